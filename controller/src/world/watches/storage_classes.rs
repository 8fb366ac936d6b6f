//! StorageClasses: whether claims that are made for models can grow.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt as _;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher as watch_objects};
use kube::{Api, ResourceExt as _};

use super::{Listed, World, complete, not_to_be_had, tell};

/// Keeps up with them. Without the right to see them a claim is made to grow all the same, and the API server says
/// whether it can.
pub(super) async fn storage_classes(api: Api<StorageClass>, world: Arc<World>, listed: Listed) {
    let mut events = watch_objects(api, watcher::Config::default()).default_backoff().boxed();
    let (mut known, mut first) = (BTreeMap::new(), true);
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => known.clear(),
            Ok(Event::InitApply(class)) => put(&mut known, &class),
            Ok(Event::InitDone) => {
                world.change(|index, _| index.see_storage_classes(&known));
                complete(&mut first, &listed);
            }
            Ok(Event::Apply(class)) => {
                put(&mut known, &class);
                world.change(|index, _| index.see_storage_classes(&known));
            }
            Ok(Event::Delete(class)) => {
                known.remove(&class.name_any());
                world.change(|index, _| index.see_storage_classes(&known));
            }
            Err(error) => {
                tell("StorageClass", &error);
                if not_to_be_had(&error) {
                    complete(&mut first, &listed);
                }
            }
        }
    }
}

fn put(known: &mut BTreeMap<String, bool>, class: &StorageClass) {
    known.insert(class.name_any(), class.allow_volume_expansion == Some(true));
}
