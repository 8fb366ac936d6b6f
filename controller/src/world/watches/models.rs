//! Models and LoRAAdapters: what people wrote, under whatever schema.

use std::collections::BTreeSet;
use std::sync::Arc;

use flexinfer_core::ids::ModelId;
use flexinfer_crds::{LoRAAdapter, Model};
use futures::StreamExt as _;
use kube::Api;
use kube::api::DynamicObject;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher as watch_objects};

use super::{Listed, complete, not_to_be_had, tell};
use crate::world::World;
use crate::world::news::{Named as _, id_of};

/// Models, whatever is in them.
pub(super) async fn models(api: Api<DynamicObject>, world: Arc<World>, listed: Listed) {
    let told = |result: Result<Event<DynamicObject>, watcher::Error>| async {
        result.inspect_err(|error| tell("Model", error)).ok()
    };
    let watch = watch_objects(api, watcher::Config::default()).default_backoff();
    let mut events = watch.filter_map(told).boxed();
    let (mut seen, mut first) = (Vec::new(), true);
    while let Some(event) = events.next().await {
        match event {
            Event::Init => seen.clear(),
            Event::InitApply(object) => {
                if let Some(model) = understood(object) {
                    seen.push(id_of(&model));
                    world.change(|index, now| index.see_model(model, now));
                }
            }
            Event::InitDone => {
                world.change(|index, now| index.listed_models(&seen, now));
                complete(&mut first, &listed);
            }
            Event::Apply(object) => {
                let name = object.place();
                match understood(object) {
                    Some(model) => world.change(|index, now| index.see_model(model, now)),
                    None => world.change(|index, _| index.forget_model(&id(&name))),
                }
            }
            Event::Delete(object) => {
                world.change(|index, _| index.forget_model(&id(&object.place())));
            }
        }
    }
}

fn id((namespace, name): &(String, String)) -> ModelId {
    ModelId::new(namespace, name)
}

/// The Model that `object` is. One that does not fit, written under another schema, is left alone.
fn understood(object: DynamicObject) -> Option<Model> {
    let (namespace, name) = object.place();
    let model = serde_json::to_value(object).and_then(serde_json::from_value::<Model>);
    model
        .inspect_err(|error| {
            tracing::warn!(namespace, name, %error, "a Model cannot be understood; it is left alone");
        })
        .ok()
}

/// LoRAAdapters. A cluster that does not know the kind, or does not let us read it, has none.
pub(super) async fn adapters(api: Api<DynamicObject>, world: Arc<World>, listed: Listed) {
    let mut events = watch_objects(api, watcher::Config::default()).default_backoff().boxed();
    let (mut seen, mut first) = (BTreeSet::new(), true);
    while let Some(event) = events.next().await {
        let see = |place: (String, String), adapter: Option<&LoRAAdapter>| {
            world.change(|index, _| index.see_adapter(place, adapter));
        };
        match event {
            Ok(Event::Init) => seen.clear(),
            Ok(Event::InitDone) => {
                world.change(|index, _| index.keep_adapters(&seen));
                complete(&mut first, &listed);
            }
            Ok(Event::InitApply(object) | Event::Apply(object)) => {
                let place = object.place();
                seen.insert(place.clone());
                let adapter = serde_json::to_value(object).and_then(serde_json::from_value);
                see(place, adapter.ok().as_ref());
            }
            Ok(Event::Delete(object)) => see(object.place(), None),
            Err(error) => {
                tracing::debug!(%error, "the watch of LoRAAdapters was interrupted");
                if not_to_be_had(&error) {
                    complete(&mut first, &listed);
                }
            }
        }
    }
}
