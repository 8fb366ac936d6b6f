//! What is in namespaces beside what is made for Models: claims, leases of GPUs, results of benchmarks.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
use kube::runtime::watcher::Event;

use super::following::{Followed, Place};
use super::{Listed, complete};
use crate::world::World;
use crate::world::index::Index;
use crate::world::news::Named as _;

pub(super) const CLAIMS: Followed<PersistentVolumeClaim, Place> = Followed {
    name: PersistentVolumeClaim::place,
    see: Index::see_claim,
    keep: Index::keep_claims,
    forget: Index::forget_claim,
};

pub(super) const GPU_LEASES: Followed<ConfigMap, Place> = Followed {
    name: ConfigMap::place,
    see: |index, map| index.see_lease(&map),
    keep: Index::keep_leases,
    forget: Index::forget_lease,
};

/// The one ConfigMap of all results.
pub(super) async fn results(
    mut events: BoxStream<'static, Event<ConfigMap>>,
    world: Arc<World>,
    listed: Listed,
) {
    let (mut seen, mut first) = (BTreeMap::new(), true);
    let see = |results| world.change(|index, _| index.see_results(results));
    while let Some(event) = events.next().await {
        match event {
            Event::Init => seen.clear(),
            Event::InitApply(map) => seen = map.data.unwrap_or_default(),
            Event::InitDone => {
                see(std::mem::take(&mut seen));
                complete(&mut first, &listed);
            }
            Event::Apply(map) => see(map.data.unwrap_or_default()),
            Event::Delete(_) => see(BTreeMap::new()),
        }
    }
}
