//! A list and the watch after it, alike for all kinds: what is there is seen, what a list does not hold is forgotten.

use std::collections::BTreeSet;
use std::sync::Arc;

use flexinfer_core::ids::GroupId;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use kube::runtime::watcher::Event;

use super::{Listed, complete};
use crate::world::World;
use crate::world::index::Index;

/// How the objects of a kind come to be known, and are forgotten.
pub(super) struct Followed<K, N> {
    /// What tells them apart.
    pub(super) name: fn(&K) -> N,
    pub(super) see: fn(&mut Index, K) -> Vec<GroupId>,
    /// Forgets all but those listed.
    pub(super) keep: fn(&mut Index, &BTreeSet<N>) -> Vec<GroupId>,
    pub(super) forget: fn(&mut Index, &K) -> Vec<GroupId>,
}

/// The namespace and the name of an object.
pub(super) type Place = (String, String);

/// Who keeps the world up with one kind.
pub(super) struct Follower {
    pub(super) world: Arc<World>,
    pub(super) listed: Listed,
}

impl Follower {
    pub(super) async fn follow<K, N: Ord>(
        self,
        mut events: BoxStream<'static, Event<K>>,
        kind: Followed<K, N>,
    ) {
        let (mut seen, mut first) = (BTreeSet::new(), true);
        while let Some(event) = events.next().await {
            match event {
                Event::Init => seen.clear(),
                Event::InitApply(object) => {
                    seen.insert((kind.name)(&object));
                    self.world.change(|index, _| (kind.see)(index, object));
                }
                Event::InitDone => {
                    self.world.change(|index, _| (kind.keep)(index, &seen));
                    complete(&mut first, &self.listed);
                }
                Event::Apply(object) => self.world.change(|index, _| (kind.see)(index, object)),
                Event::Delete(object) => {
                    self.world.change(|index, _| (kind.forget)(index, &object));
                }
            }
        }
    }
}
