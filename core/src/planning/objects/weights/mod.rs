//! Where a model's weights are kept on a cluster, how they get there, and where its engine finds them. The
//! layout below `/models` is that of local mode's data folder, so that several models can share one claim and
//! a changed source never lands between the files of the one before (K8S-11).

mod host;
mod quantizing;
mod resolver;

use flexinfer_crds::model::CacheStrategy;
use flexinfer_crds::{Model, Quantity};

use super::{Refusal, Settings};
use crate::backends::{Backend, Config, ModelPlace};
use crate::effective::Effective;
use crate::sources::download::Selection;
use resolver::Resolver;

pub(super) use host::{host_folder_allowed, not_allowed};
pub use quantizing::Quantized;

/// Where the volume with the weights is mounted in every container.
pub(super) const MODELS: &str = "/models";

/// A model's weights on a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// What the engine is given.
    pub place: ModelPlace,
    /// Where an engine that fetches by itself keeps what it fetched.
    pub store: Option<String>,
    /// The strategy in effect; `None` where nothing is kept.
    pub strategy: Option<CacheStrategy>,
    /// What holds the weights.
    pub held: Held,
    /// Where that is mounted.
    pub mount: String,
    /// Whether the engine may write there.
    pub writable: bool,
    /// How they get there.
    pub filling: Filling,
    /// The folder that the engine reads, absolute, where it is one that can be copied to memory.
    pub folder: Option<String>,
    /// The files of that folder that matter, as patterns; empty for all.
    pub only: Vec<String>,
    /// The folder of the autoencoder that `config.vaeRepo` names.
    pub autoencoder: Option<String>,
    /// What is made of them before an engine sees them, where the Model asks for that.
    pub quantized: Option<Quantized>,
}

/// What holds weights.
#[derive(Clone, Debug, PartialEq)]
pub enum Held {
    /// Nothing: the engine needs none, or its image brings them.
    Nowhere,
    /// A persistent volume claim.
    Claim {
        /// Its name.
        name: String,
        /// Who makes it.
        made_by: ClaimUse,
    },
    /// A folder of the node, made where it is missing unless it is read only.
    HostFolder(String),
    /// The node's memory, for as long as the pod lives, up to this size.
    Memory(Option<Quantity>),
    /// The node's disk, for as long as the pod lives.
    Disk,
}

/// Whose a claim is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimUse {
    /// It is made for the model and goes with it.
    Made,
    /// The Model names it; it must be there.
    Named,
    /// It is the source itself; it must be there.
    Source,
}

/// How weights get to where they are held.
#[derive(Clone, Debug, PartialEq)]
pub enum Filling {
    /// They are there, or the engine sees to it.
    Nothing,
    /// They are there already; a Job looks, before an engine is started, whether this path is whole.
    Checked(String),
    /// A Job does it before an engine is started.
    ByJob(Vec<Work>),
    /// Each pod does it before its engine starts.
    AtStart(Vec<Work>),
}

/// One step of filling.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// Fetching from a hub.
    Fetch {
        /// The source, in its canonical form.
        source: String,
        /// What of it.
        selection: Selection,
        /// The folder it goes to.
        folder: String,
    },
    /// Copying from another claim.
    Copy {
        /// That claim.
        claim: String,
        /// The folder of it; empty for its top.
        folder: String,
        /// The files that matter, as patterns; empty for all.
        only: Vec<String>,
    },
}

impl Weights {
    /// The weights of `model`, which `backend` serves.
    pub fn of(
        model: &Model,
        effective: &Effective,
        backend: Backend,
        settings: &Settings,
    ) -> Result<Self, Refusal> {
        let cache = model.spec.cache.as_ref();
        let resolver = Resolver { model, effective, backend, settings, cache };
        let weights = resolver.fetched()?;
        match &model.spec.quantize {
            None => Ok(weights),
            Some(wanted) => {
                let config = Config::of(Some(&model.spec.config));
                weights.quantized(wanted, &effective.id.name, config)
            }
        }
    }

    /// Whether they outlive a pod, so that copying them to memory is worth it.
    pub(super) fn persistent(&self) -> bool {
        matches!(self.held, Held::Claim { .. } | Held::HostFolder(_))
    }
}
