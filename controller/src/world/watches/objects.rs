//! The objects that are made for Models.

use std::collections::BTreeSet;
use std::sync::Arc;

use flexinfer_core::ids::GroupId;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use kube::Resource;
use kube::runtime::watcher::Event;

use super::{Listed, complete};
use crate::world::World;
use crate::world::index::Index;
use crate::world::news::Named as _;
use crate::world::objects::Kind;

/// Where the objects of a kind go.
pub(super) struct Objects {
    pub(super) world: Arc<World>,
    pub(super) listed: Listed,
    pub(super) kind: Kind,
}

impl Objects {
    pub(super) async fn follow<K: Resource + Send + 'static>(
        self,
        mut events: BoxStream<'static, Event<K>>,
        see: fn(&mut Index, K) -> Vec<GroupId>,
        forget: fn(&mut Index, &K) -> Vec<GroupId>,
    ) {
        let (mut seen, mut first) = (BTreeSet::new(), true);
        while let Some(event) = events.next().await {
            match event {
                Event::Init => seen.clear(),
                Event::InitApply(object) => {
                    seen.insert(object.place());
                    self.world.change(|index, _| see(index, object));
                }
                Event::InitDone => {
                    self.world.change(|index, _| index.keep(self.kind, &seen));
                    complete(&mut first, &self.listed);
                }
                Event::Apply(object) => self.world.change(|index, _| see(index, object)),
                Event::Delete(object) => self.world.change(|index, _| forget(index, &object)),
            }
        }
    }
}
