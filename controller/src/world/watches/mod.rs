//! The watches that keep the world up to date. Each goes on by itself after any failure; an object
//! that cannot be understood is told about once and left out, so that it stops none of the others.

mod storage_classes;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use flexinfer_core::ids::ModelId;
use flexinfer_crds::{LoRAAdapter, Model, keys};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Node, PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::node::v1::RuntimeClass;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher as watch_objects};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use tokio::sync::watch as tokio_watch;
use tokio::task::JoinSet;

use super::World;
use super::index::Index;
use super::news::{Named as _, id_of};
use super::objects::Kind;
use storage_classes::storage_classes;

/// How many lists are not complete yet. Nothing is decided before there are none: what was not
/// listed looks as if it were not there.
pub(crate) type Watched = tokio_watch::Receiver<usize>;

/// What is watched beside the nodes of the cluster.
pub(crate) struct Watching<'a> {
    /// The namespace of the Models and of what is made for them; `None` for all.
    pub(crate) namespace: Option<&'a str>,
    /// Namespace and name of the ConfigMap of all benchmarks' results.
    pub(crate) results: (&'a str, &'a str),
}

/// Begins to watch everything that decisions depend on. The tasks end when the set is dropped;
/// [`synced`] waits for the first lists.
pub(crate) fn watch(
    client: &Client,
    watching: &Watching<'_>,
    world: &Arc<World>,
) -> (JoinSet<()>, Watched) {
    let (listed, watched) = tokio_watch::channel(0);
    let listed = Arc::new(listed);
    let mut tasks = JoinSet::new();
    let scope = Scope { client, namespace: watching.namespace };
    let (namespace, name) = watching.results;
    let named = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let measured = events(Api::namespaced(client.clone(), namespace), &named);
    let ours = watcher::Config::default().labels(&format!(
        "{}={}",
        keys::MANAGED_BY,
        keys::MANAGED_BY_FLEXINFER
    ));
    let leases = watcher::Config::default().labels(keys::GPU_LEASE);
    // Who is given this is waited for, so that no list can be forgotten.
    let listed = || {
        listed.send_modify(|lists| *lists += 1);
        Arc::clone(&listed)
    };
    tasks.spawn(models(scope.untyped::<Model>(), Arc::clone(world), listed()));
    tasks.spawn(adapters(scope.untyped::<LoRAAdapter>(), Arc::clone(world), listed()));
    tasks.spawn(nodes(Api::all(client.clone()), Arc::clone(world), listed()));
    tasks.spawn(runtime_classes(Api::all(client.clone()), Arc::clone(world), listed()));
    tasks.spawn(storage_classes(Api::all(client.clone()), Arc::clone(world), listed()));
    let objects = |kind| Objects { world: Arc::clone(world), listed: listed(), kind };
    tasks.spawn(objects(Kind::Deployment).follow(
        events::<Deployment>(scope.api(), &ours),
        Index::see_deployment,
        Index::forget_deployment,
    ));
    tasks.spawn(objects(Kind::Service).follow(
        events::<Service>(scope.api(), &ours),
        Index::see_service,
        Index::forget_service,
    ));
    tasks.spawn(objects(Kind::Files).follow(
        events::<ConfigMap>(scope.api(), &ours),
        Index::see_files,
        Index::forget_files,
    ));
    tasks.spawn(objects(Kind::Job).follow(
        events::<Job>(scope.api(), &ours),
        Index::see_job,
        Index::forget_job,
    ));
    tasks.spawn(claims(
        events(scope.api(), &watcher::Config::default()),
        Arc::clone(world),
        listed(),
    ));
    tasks.spawn(objects(Kind::Pod).follow(
        events::<Pod>(scope.api(), &ours),
        Index::see_pod,
        Index::forget_pod,
    ));
    tasks.spawn(gpu_leases(events(scope.api(), &leases), Arc::clone(world), listed()));
    tasks.spawn(results(measured, Arc::clone(world), listed()));
    (tasks, watched)
}

/// Waits until everything was listed once.
pub(crate) async fn synced(mut watched: Watched) {
    // The tasks that tell live as long as the process.
    let _ = watched.wait_for(|lists| *lists == 0).await;
}

type Listed = Arc<tokio_watch::Sender<usize>>;

/// Notes that a list is complete, the first time.
fn complete(first: &mut bool, listed: &Listed) {
    if std::mem::take(first) {
        listed.send_modify(|lists| *lists = lists.saturating_sub(1));
    }
}

struct Scope<'a> {
    client: &'a Client,
    namespace: Option<&'a str>,
}

impl Scope<'_> {
    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let client = self.client.clone();
        self.namespace.map_or_else(
            || Api::all(client.clone()),
            |namespace| Api::namespaced(client.clone(), namespace),
        )
    }

    /// Objects as they are stored, whatever is in them.
    fn untyped<K: Resource<DynamicType = ()>>(&self) -> Api<DynamicObject> {
        let kind = ApiResource::erase::<K>(&());
        let client = self.client.clone();
        self.namespace.map_or_else(
            || Api::all_with(client.clone(), &kind),
            |namespace| Api::namespaced_with(client.clone(), namespace, &kind),
        )
    }
}

/// The events of a watch; a failure is told and the watch begun again after a while.
fn events<K>(api: Api<K>, config: &watcher::Config) -> BoxStream<'static, Event<K>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    K::DynamicType: Default,
{
    let told = |result: Result<Event<K>, watcher::Error>| async {
        result.inspect_err(|error| tell(&K::kind(&K::DynamicType::default()), error)).ok()
    };
    watch_objects(api, config.clone()).default_backoff().filter_map(told).boxed()
}

/// What keeps a kind from being seen. A right that is missing stays missing until somebody gives it.
fn tell(kind: &str, error: &watcher::Error) {
    if forbidden(error) {
        let hint = "give the service account the roles of the chart";
        return tracing::error!(kind, %error, hint, "a right is missing");
    }
    tracing::warn!(kind, %error, "a watch was interrupted");
}

fn forbidden(error: &watcher::Error) -> bool {
    let code = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code,
        _ => 0,
    };
    code == 403
}

async fn models(api: Api<DynamicObject>, world: Arc<World>, listed: Listed) {
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
async fn adapters(api: Api<DynamicObject>, world: Arc<World>, listed: Listed) {
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

fn not_to_be_had(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::InitialListFailed(kube::Error::Api(status))
        if [403, 404].contains(&status.code))
}

async fn nodes(api: Api<Node>, world: Arc<World>, listed: Listed) {
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

async fn runtime_classes(api: Api<RuntimeClass>, world: Arc<World>, listed: Listed) {
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

async fn claims(
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

async fn gpu_leases(
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
async fn results(
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

/// Where the objects of a kind go.
struct Objects {
    world: Arc<World>,
    listed: Listed,
    kind: Kind,
}

impl Objects {
    async fn follow<K: Resource + Send + 'static>(
        self,
        mut events: BoxStream<'static, Event<K>>,
        see: fn(&mut Index, K) -> Vec<flexinfer_core::ids::GroupId>,
        forget: fn(&mut Index, K) -> Vec<flexinfer_core::ids::GroupId>,
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
                Event::Delete(object) => self.world.change(|index, _| forget(index, object)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
