//! Leases by which somebody else, such as a training job, holds a group's GPU: ConfigMaps with a
//! label.

use std::collections::BTreeMap;

use flexinfer_core::ids::GroupId;
use flexinfer_core::moment::Moment;
use flexinfer_core::planning::time::moment;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;

/// Somebody else's hold on a GPU.
pub(super) struct Lease {
    pub(super) until: Moment,
    /// The namespace and name of its ConfigMap.
    pub(super) from: (String, String),
}

impl Lease {
    /// The lease that `map` says, with the group whose GPU it is about. One without a group or
    /// with an end that is no time is none.
    pub(super) fn of(map: &ConfigMap) -> Option<(GroupId, Self)> {
        let nothing = BTreeMap::new();
        let data = map.data.as_ref().unwrap_or(&nothing);
        let group =
            data.get("group").map(|group| group.trim()).filter(|group| !group.is_empty())?;
        let until: Timestamp = data.get("expiresAt")?.trim().parse().ok()?;
        let from = (map.namespace()?, map.name_any());
        let group = GroupId::Shared { namespace: from.0.as_str().into(), name: group.into() };
        Some((group, Self { until: moment(&Time(until)), from }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(data: &serde_json::Value) -> Option<GroupId> {
        let map = serde_json::from_value(json!({
            "metadata": { "name": "gpu-lease-gpu0", "namespace": "ml" }, "data": data,
        }));
        Lease::of(&map.unwrap()).map(|(group, _)| group)
    }

    #[test]
    fn a_training_job_holds_the_gpu_of_its_group() {
        let group = lease(&json!({ "group": "gpu0", "expiresAt": "2026-01-01T00:00:00Z" }));
        assert_eq!(group.unwrap().to_string(), "ml/gpu0");
    }

    #[test]
    fn a_lease_without_an_end_or_a_group_is_none() {
        assert!(lease(&json!({ "group": "gpu0" })).is_none());
        assert!(lease(&json!({ "group": "gpu0", "expiresAt": "tomorrow" })).is_none());
        assert!(lease(&json!({ "expiresAt": "2026-01-01T00:00:00Z" })).is_none());
    }
}
