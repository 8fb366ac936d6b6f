//! The watches that keep the world up to date. Each goes on by itself after any failure; an object
//! that cannot be understood is told about once and left out, so that it stops none of the others.

mod following;
mod models;
mod namespaces;
mod nodes;
mod objects;
mod storage_classes;

#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::sync::Arc;

use flexinfer_crds::{LoRAAdapter, Model, keys};
use futures::StreamExt as _;
use futures::stream::BoxStream;
use k8s_openapi::NamespaceResourceScope;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher as watch_objects};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch as tokio_watch;
use tokio::task::JoinSet;

use super::World;
use following::Follower;
use models::{adapters, models};
use namespaces::{CLAIMS, GPU_LEASES, results};
use nodes::{NODES, RUNTIME_CLASSES};
use objects::{DEPLOYMENTS, FILES, JOBS, PODS, SERVICES};
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
    let follower = || Follower { world: Arc::clone(world), listed: listed() };
    let all = watcher::Config::default();
    tasks.spawn(models(scope.untyped::<Model>(), Arc::clone(world), listed()));
    tasks.spawn(adapters(scope.untyped::<LoRAAdapter>(), Arc::clone(world), listed()));
    tasks.spawn(follower().follow(events(Api::all(client.clone()), &all), NODES));
    tasks.spawn(follower().follow(events(Api::all(client.clone()), &all), RUNTIME_CLASSES));
    tasks.spawn(storage_classes(Api::all(client.clone()), Arc::clone(world), listed()));
    tasks.spawn(follower().follow(events(scope.api(), &ours), DEPLOYMENTS));
    tasks.spawn(follower().follow(events(scope.api(), &ours), SERVICES));
    tasks.spawn(follower().follow(events(scope.api(), &ours), FILES));
    tasks.spawn(follower().follow(events(scope.api(), &ours), JOBS));
    tasks.spawn(follower().follow(events(scope.api(), &all), CLAIMS));
    tasks.spawn(follower().follow(events(scope.api(), &ours), PODS));
    tasks.spawn(follower().follow(events(scope.api(), &leases), GPU_LEASES));
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

/// Whether the cluster does not know a kind, or does not let us read it.
fn not_to_be_had(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::InitialListFailed(kube::Error::Api(status))
        if [403, 404].contains(&status.code))
}
