//! What is in namespaces beside what is made for Models: claims, leases of GPUs, results of benchmarks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
use kube::runtime::watcher::Event;

use super::{Listed, complete};
use crate::world::World;
use crate::world::news::Named as _;

pub(super) async fn claims(
    mut events: BoxStream<'static, Event<PersistentVolumeClaim>>,
    world: Arc<World>,
    listed: Listed,
) {
    let (mut seen, mut first) = (BTreeSet::new(), true);
    while let Some(event) = events.next().await {
        match event {
            Event::Init => seen.clear(),
            Event::InitApply(claim) => {
                seen.insert(claim.place());
                world.change(|index, _| index.see_claim(claim));
            }
            Event::InitDone => {
                world.change(|index, _| index.keep_claims(&seen));
                complete(&mut first, &listed);
            }
            Event::Apply(claim) => world.change(|index, _| index.see_claim(claim)),
            Event::Delete(claim) => world.change(|index, _| index.forget_claim(&claim)),
        }
    }
}

pub(super) async fn gpu_leases(
    mut events: BoxStream<'static, Event<ConfigMap>>,
    world: Arc<World>,
    listed: Listed,
) {
    let (mut seen, mut first) = (BTreeSet::new(), true);
    while let Some(event) = events.next().await {
        match event {
            Event::Init => seen.clear(),
            Event::InitApply(map) => {
                seen.insert(map.place());
                world.change(|index, _| index.see_lease(&map));
            }
            Event::InitDone => {
                world.change(|index, _| index.keep_leases(&seen));
                complete(&mut first, &listed);
            }
            Event::Apply(map) => world.change(|index, _| index.see_lease(&map)),
            Event::Delete(map) => world.change(|index, _| index.forget_lease(&map)),
        }
    }
}

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
