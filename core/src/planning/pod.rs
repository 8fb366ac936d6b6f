//! Which pod is meant: another may have its name later, or have it by now.

use k8s_openapi::api::core::v1::Pod;

/// One pod, by its name and what tells it from another of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodId {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

impl PodId {
    /// That of `pod`; `None` for one that the API server has never seen.
    pub fn of(pod: &Pod) -> Option<Self> {
        Some(Self { name: pod.metadata.name.clone()?, uid: pod.metadata.uid.clone()? })
    }
}
