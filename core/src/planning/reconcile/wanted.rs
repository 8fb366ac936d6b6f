//! Everything that a plan asks for.

use flexinfer_crds::model::ModelStatus;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Service};

use crate::ids::ModelId;
use crate::moment::Moment;
use crate::planning::benchmarking::Measured;
use crate::planning::caching::CacheStep;
use crate::planning::group::Verdict;
use crate::planning::moving::Moving;
use crate::planning::pod::PodId;
use crate::planning::status::Announcement;
use crate::planning::writing::Part;

/// What shall be written for one model, and remembered.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Which model.
    pub id: ModelId,
    /// Whether the Model shall be kept from vanishing before it is cleaned up.
    pub finalizer: Finalizer,
    /// The Service; `None` leaves what is there.
    pub service: Option<Service>,
    /// Files that the engine reads at its start.
    pub files: Option<ConfigMap>,
    /// The next step towards having its weights on their claim.
    pub caching: Option<CacheStep>,
    /// The Deployment.
    pub engine: WantedEngine,
    /// Jobs that stand in nobody's way: they measure the model, or clean up after it.
    pub jobs: Vec<Job>,
    /// Jobs that measured what the model is no more, or have removed a copy, by name.
    pub outdated: Vec<String>,
    /// How fast it is where it serves now.
    pub measured: Option<Measured>,
    /// Pods that nobody needs any more.
    pub leftovers: Vec<PodId>,
    /// Pods that end and have nothing left to do: they need the time no more that they were given.
    pub released: Vec<PodId>,
    /// Pods on nodes that are about to be taken away.
    pub moving: Moving,
    /// The status.
    pub status: ModelStatus,
    /// What to tell about the change of status.
    pub announcements: Vec<Announcement>,
    /// Its place in the group; `None` where nothing could be decided.
    pub verdict: Option<Verdict>,
    /// What is left alone for now, since it was refused not long ago.
    pub withheld: Vec<Part>,
}

/// What shall be with the finalizer of a Model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finalizer {
    /// Put it there before anything is made.
    Add,
    /// It is as it shall be.
    Keep,
    /// Everything is cleaned up: let the Model go.
    Remove,
}

/// What shall be with the Deployment of a model.
#[derive(Clone, Debug, PartialEq)]
pub enum WantedEngine {
    /// It shall be like this, its `replicas` among it.
    Deployment(Box<Deployment>),
    /// It shall be like this; how many replicas it has while it runs is another autoscaler's to say.
    ScaledElsewhere {
        /// Without `replicas`.
        deployment: Box<Deployment>,
        /// What this controller sets all the same: from none to some, and from some to none.
        step: Option<u32>,
    },
    /// What runs stays as it is, with so many replicas: the spec cannot be followed now.
    Scaled(u32),
    /// It was refused before: whether it would be taken is to be found out, and nothing changed by that.
    Tried {
        /// As it would be started; without `replicas` where another autoscaler says them.
        deployment: Box<Deployment>,
        /// What would be set in a further write then.
        step: Option<u32>,
    },
    /// Whatever there is, it is left alone for now.
    AsItIs,
    /// There is none to make.
    Nothing,
}

impl WantedEngine {
    /// The same for an engine, `asked` for so many replicas, that may not be made anew or changed now: what runs is
    /// still scaled, above all to zero; nothing is started that is not as it shall be.
    #[must_use]
    pub fn but_as_it_is(self, asked: u32) -> Self {
        let replicas = match self {
            Self::Deployment(deployment) => {
                deployment.spec.replicas.and_then(|replicas| u32::try_from(replicas).ok())
            }
            Self::ScaledElsewhere { step, .. } => step,
            Self::Scaled(replicas) => Some(replicas),
            Self::Nothing => return Self::Nothing,
            Self::Tried { .. } | Self::AsItIs => None,
        };
        replicas.filter(|_| asked > 0).map_or(Self::AsItIs, Self::Scaled)
    }
}

/// Everything that shall be written for a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// One for each member. Who gives up a GPU comes before who gets it.
    pub wanted: Vec<Wanted>,
    /// When to look again although nothing is reported.
    pub revisit: Option<Moment>,
}
