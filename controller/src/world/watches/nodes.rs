//! What the cluster offers: nodes and RuntimeClasses.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::node::v1::RuntimeClass;
use kube::runtime::watcher::{self, Event};
use kube::{Api, ResourceExt as _};

use super::{Listed, complete, events};
use crate::world::World;

pub(super) async fn nodes(api: Api<Node>, world: Arc<World>, listed: Listed) {
    let mut events = events(api, &watcher::Config::default());
    let (mut seen, mut first) = (Vec::new(), true);
    while let Some(event) = events.next().await {
        match event {
            Event::Init => seen.clear(),
            Event::InitApply(node) => {
                seen.push(node.name_any());
                world.change(|index, _| index.see_node(&node));
            }
            Event::InitDone => {
                world.change(|index, _| index.listed_nodes(&seen));
                complete(&mut first, &listed);
            }
            Event::Apply(node) => world.change(|index, _| index.see_node(&node)),
            Event::Delete(node) => world.change(|index, _| index.forget_node(&node)),
        }
    }
}

pub(super) async fn runtime_classes(api: Api<RuntimeClass>, world: Arc<World>, listed: Listed) {
    let mut events = events(api, &watcher::Config::default());
    let (mut seen, mut first) = (BTreeSet::new(), true);
    while let Some(event) = events.next().await {
        let see = |class: &RuntimeClass, there| {
            world.change(|index, _| index.see_runtime_class(&class.name_any(), there));
        };
        match event {
            Event::Init => seen.clear(),
            Event::InitApply(class) => {
                seen.insert(class.name_any());
                see(&class, true);
            }
            Event::InitDone => {
                world.change(|index, _| index.keep_runtime_classes(&seen));
                complete(&mut first, &listed);
            }
            Event::Apply(class) => see(&class, true),
            Event::Delete(class) => see(&class, false),
        }
    }
}
