//! One model with everything that is known of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use flexinfer_core::backends::Complaint;
use flexinfer_core::effective::{Defaults, Effective};
use flexinfer_core::ids::{GroupId, ModelId};
use flexinfer_core::planning::group::Record;
use flexinfer_core::planning::model::Demand;
use flexinfer_core::planning::objects::Adapters;
use flexinfer_core::planning::progress::Progress;
use flexinfer_core::planning::writing::{Contest, Dispute, Writing};
use flexinfer_crds::Model;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};

use super::objects::Kind;

/// What is known of the writes of each of a model's objects, by its kind and name.
pub(crate) type Contests = BTreeMap<(Kind, String), Contest>;

/// One model, its objects, its demand, and what was remembered of it.
#[derive(Clone)]
pub(crate) struct Member {
    pub(crate) id: ModelId,
    pub(crate) model: Arc<Model>,
    /// What the spec means; of a spec that means nothing, what the last one did that meant
    /// something.
    pub(crate) effective: Option<Arc<Effective>>,
    /// What keeps the spec from meaning anything.
    pub(crate) complaints: Vec<Complaint>,
    /// The LoRA adapters that its engines shall have.
    pub(crate) adapters: Adapters,
    pub(crate) demand: Demand,
    pub(crate) record: Record,
    /// What of its objects was not taken.
    pub(crate) writing: Writing,
    pub(crate) deployment: Option<Arc<Deployment>>,
    pub(crate) service: Option<Arc<Service>>,
    pub(crate) files: Option<Arc<ConfigMap>>,
    pub(crate) pods: Vec<Arc<Pod>>,
    pub(crate) jobs: Vec<Arc<Job>>,
    pub(crate) job_pods: Vec<Arc<Pod>>,
    /// Who else claims one of its names.
    pub(crate) name_conflict: Option<String>,
    /// Who else writes its objects.
    pub(crate) dispute: Option<Dispute>,
    /// What is known of the writes of each of them.
    pub(crate) contests: Contests,
    /// What a pod says that brings its weights.
    pub(crate) progress: Option<Progress>,
    /// The versions of its objects as this process left them.
    pub(crate) left: BTreeMap<Kind, String>,
}

impl Member {
    /// What is known of the writes of its object of this kind and name.
    pub(crate) fn contest(&self, (kind, name): (Kind, &str)) -> Contest {
        self.contests.get(&(kind, name.to_owned())).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
impl Member {
    /// A model of which nothing was made yet.
    pub(crate) fn bare(namespace: &str, model: Model) -> Self {
        let name = model.metadata.name.clone().unwrap();
        Self {
            id: ModelId::new(namespace, &name),
            model: Arc::new(model),
            effective: None,
            complaints: Vec::new(),
            adapters: Adapters::default(),
            demand: Demand::default(),
            record: Record::default(),
            writing: Writing::default(),
            deployment: None,
            service: None,
            files: None,
            pods: Vec::new(),
            jobs: Vec::new(),
            job_pods: Vec::new(),
            name_conflict: None,
            dispute: None,
            contests: BTreeMap::new(),
            progress: None,
            left: BTreeMap::new(),
        }
    }
}

/// What a Model's spec means.
#[derive(Clone)]
pub(super) struct Meaning {
    pub(super) effective: Option<Arc<Effective>>,
    pub(super) complaints: Vec<Complaint>,
}

impl Meaning {
    /// Of `model`, where `before` is what its last spec meant.
    pub(super) fn of(model: &Model, before: Option<&Arc<Effective>>) -> Self {
        let generation = model.metadata.generation.and_then(|number| u64::try_from(number).ok());
        match Effective::of(model, generation.unwrap_or(0), &Defaults::default()) {
            Ok(effective) => Self { effective: Some(Arc::new(effective)), complaints: Vec::new() },
            Err(complaints) => Self { effective: before.cloned(), complaints },
        }
    }

    /// The group that the model is in.
    pub(super) fn group(&self, id: &ModelId) -> GroupId {
        let effective = self.effective.as_ref();
        effective.map_or_else(|| GroupId::Alone(id.clone()), |model| model.group.clone())
    }
}
