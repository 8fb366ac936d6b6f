//! Which object this is, and whether a sight of it says anything that was not known.

use flexinfer_core::ids::ModelId;
use flexinfer_crds::Model;
use flexinfer_crds::model::ModelStatus;
use kube::{Resource, ResourceExt as _};

/// Where an object is.
pub(super) trait Named {
    /// Its namespace and name.
    fn place(&self) -> (String, String);
}

impl<K: Resource> Named for K {
    fn place(&self) -> (String, String) {
        (self.namespace().unwrap_or_default(), self.name_any())
    }
}

/// Which Model this is.
pub(super) fn id_of(model: &Model) -> ModelId {
    ModelId::new(&model.namespace().unwrap_or_default(), &model.name_any())
}

/// Whether `known` is a later sight of the same object than `seen`. Versions of one object count up.
pub(super) fn newer(known: &impl Resource, seen: &impl Resource) -> bool {
    let version = |version: Option<String>| version.and_then(|text| text.parse::<u64>().ok());
    let same = known.meta().uid == seen.meta().uid;
    same && version(known.resource_version()) > version(seen.resource_version())
}

/// Whether anything but the status is the same.
pub(super) fn same_spec(before: &Model, after: &Model) -> bool {
    let (before, after) = (&before.metadata, &after.metadata);
    before.uid == after.uid
        && before.generation == after.generation
        && before.annotations == after.annotations
        && before.labels == after.labels
        && before.finalizers == after.finalizers
        && before.deletion_timestamp == after.deletion_timestamp
}

/// Whether gateways have something else to say than before: what they only renew is not it.
pub(super) fn busier(before: Option<&ModelStatus>, after: Option<&ModelStatus>) -> bool {
    let counts = |status: Option<&ModelStatus>| -> Vec<(String, i32, i32)> {
        let entries = status.into_iter().flat_map(|status| &status.traffic);
        entries.map(|entry| (entry.gateway.clone(), entry.in_flight, entry.waiting)).collect()
    };
    let asleep = |status: Option<&ModelStatus>| {
        let ready = status.into_iter().flat_map(|status| &status.conditions);
        !ready.into_iter().any(|found| found.type_ == "Ready" && found.status == "True")
    };
    let last = |status: Option<&ModelStatus>| {
        status.and_then(|status| status.last_active_time.as_ref()).map(|time| time.0)
    };
    counts(before) != counts(after) || (asleep(after) && last(before) != last(after))
}
