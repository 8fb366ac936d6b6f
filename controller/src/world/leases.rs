//! Leases by which somebody else, such as a training job, holds a group's GPU: ConfigMaps with a
//! label.

use std::collections::{BTreeMap, BTreeSet};

use flexinfer_core::ids::GroupId;
use flexinfer_core::moment::Moment;
use flexinfer_core::planning::time::moment;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::news::Named as _;

/// The leases by the namespace and name of their ConfigMaps.
#[derive(Default)]
pub(super) struct Leases {
    known: BTreeMap<(String, String), Lease>,
}

/// Somebody else's hold on a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Lease {
    group: GroupId,
    until: Moment,
}

impl Leases {
    /// The lease that `map` says now, instead of what it said before. The groups for which that changes something.
    pub(super) fn see(&mut self, map: &ConfigMap) -> Vec<GroupId> {
        self.put(map.place(), Lease::of(map))
    }

    /// The ConfigMap is gone.
    pub(super) fn forget(&mut self, map: &ConfigMap) -> Vec<GroupId> {
        self.put(map.place(), None)
    }

    /// Forgets those that are not `listed`.
    pub(super) fn keep(&mut self, listed: &BTreeSet<(String, String)>) -> Vec<GroupId> {
        let gone: Vec<_> =
            self.known.keys().filter(|place| !listed.contains(*place)).cloned().collect();
        gone.into_iter().flat_map(|place| self.put(place, None)).collect()
    }

    /// When the last of the leases on `group` ends.
    pub(super) fn on(&self, group: &GroupId) -> Option<Moment> {
        let leases = self.known.values().filter(|lease| lease.group == *group);
        leases.map(|lease| lease.until).max()
    }

    fn put(&mut self, place: (String, String), lease: Option<Lease>) -> Vec<GroupId> {
        let before = match lease.clone() {
            Some(lease) => self.known.insert(place, lease),
            None => self.known.remove(&place),
        };
        if before == lease {
            return Vec::new();
        }
        before.into_iter().chain(lease).map(|lease| lease.group).collect()
    }
}

impl Lease {
    /// The lease that `map` says. One without a group or with an end that is no time is none.
    fn of(map: &ConfigMap) -> Option<Self> {
        let nothing = BTreeMap::new();
        let data = map.data.as_ref().unwrap_or(&nothing);
        let group =
            data.get("group").map(|group| group.trim()).filter(|group| !group.is_empty())?;
        let until: Timestamp = data.get("expiresAt")?.trim().parse().ok()?;
        let namespace = map.metadata.namespace.as_deref()?.into();
        let group = GroupId::Shared { namespace, name: group.into() };
        Some(Self { group, until: moment(&Time(until)) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(name: &str, data: &serde_json::Value) -> ConfigMap {
        let map = json!({ "metadata": { "name": name, "namespace": "ml" }, "data": data });
        serde_json::from_value(map).unwrap()
    }

    fn lease(data: &serde_json::Value) -> Option<GroupId> {
        Lease::of(&map("gpu-lease-gpu0", data)).map(|lease| lease.group)
    }

    fn until(leases: &Leases, group: &str) -> Option<u64> {
        let group = GroupId::Shared { namespace: "ml".into(), name: group.into() };
        let origin = Moment::ORIGIN;
        leases.on(&group).map(|until| until.since(origin).as_secs())
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

    #[test]
    fn of_two_leases_on_a_group_the_one_that_ends_last_counts_and_each_ends_alone() {
        let mut leases = Leases::default();
        let short = map("short", &json!({ "group": "gpu0", "expiresAt": "1970-01-01T00:01:00Z" }));
        let long = map("long", &json!({ "group": "gpu0", "expiresAt": "1970-01-01T00:02:00Z" }));
        leases.see(&long);
        leases.see(&short);
        assert_eq!(until(&leases, "gpu0"), Some(120));
        leases.forget(&short);
        assert_eq!(until(&leases, "gpu0"), Some(120));
        leases.forget(&long);
        assert_eq!(until(&leases, "gpu0"), None);
    }

    #[test]
    fn a_lease_that_is_edited_to_another_group_holds_only_that_one() {
        let mut leases = Leases::default();
        let of = |group| json!({ "group": group, "expiresAt": "1970-01-01T00:01:00Z" });
        leases.see(&map("lease", &of("gpu0")));
        let moved = leases.see(&map("lease", &of("gpu1")));
        assert_eq!(moved.len(), 2, "both groups are to be looked at: {moved:?}");
        assert_eq!((until(&leases, "gpu0"), until(&leases, "gpu1")), (None, Some(60)));
        assert_eq!(leases.see(&map("lease", &of("gpu1"))), [], "nothing changed");
        leases.see(&map("lease", &json!({ "group": "gpu1" })));
        assert_eq!(until(&leases, "gpu1"), None, "it holds nothing any more");
    }

    #[test]
    fn a_lease_that_went_while_nobody_watched_is_over() {
        let mut leases = Leases::default();
        for name in ["stays", "goes"] {
            leases.see(&map(name, &json!({ "group": name, "expiresAt": "1970-01-01T00:01:00Z" })));
        }
        let gone = leases.keep(&[("ml".to_owned(), "stays".to_owned())].into());
        assert_eq!(gone.iter().map(ToString::to_string).collect::<Vec<_>>(), ["ml/goes"]);
        assert_eq!((until(&leases, "stays"), until(&leases, "goes")), (Some(60), None));
    }
}
