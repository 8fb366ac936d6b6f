//! By what an object is found: the model that it was made for.

use flexinfer_core::ids::ModelId;
use flexinfer_core::planning::objects::names;
use flexinfer_crds::keys;
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

    /// The owner of `object`; `None` for one that belongs to no model.
    pub(super) fn of(object: &impl Resource) -> Option<Self> {
        // Pods of Jobs are labelled otherwise, so that no Service finds them.
        let labels = object.labels();
        let label = labels.get(keys::MODEL).or_else(|| labels.get(keys::CACHE))?.clone();
        Some(Self { namespace: object.namespace()?, label })
    }
}
