//! By what an object is found: the model that it was made for.

use flexinfer_core::ids::ModelId;
use flexinfer_core::planning::objects::names;
use flexinfer_crds::{GROUP, Model, keys};
use kube::{Resource, ResourceExt as _};

/// The namespace and the label that a model's objects carry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Owner {
    namespace: String,
    label: String,
}

impl Owner {
    /// The owner that `model` is.
    pub(super) fn model(model: &ModelId) -> Self {
        Self { namespace: model.namespace.to_string(), label: names::label_value(&model.name) }
    }

    /// The owner of `object`; `None` for one that belongs to no model. Whom it was made for it says for good; of what
    /// others make, such as pods, labels tell.
    pub(super) fn of(object: &impl Resource) -> Option<Self> {
        // Pods of Jobs are labelled otherwise, so that no Service finds them.
        let labels = object.labels();
        let labelled = || labels.get(keys::MODEL).or_else(|| labels.get(keys::CACHE)).cloned();
        let label = model_of(object).map(names::label_value).or_else(labelled)?;
        Some(Self { namespace: object.namespace()?, label })
    }
}

/// The Model that an object was made for, by name.
fn model_of(object: &impl Resource) -> Option<&str> {
    let mut owners = object.owner_references().iter();
    let ours = |version: &str| version.split_once('/').is_some_and(|(group, _)| group == GROUP);
    let owner = owners.find(|owner| owner.kind == Model::kind(&()) && ours(&owner.api_version))?;
    Some(&owner.name)
}
