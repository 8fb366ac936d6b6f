//! What a watch has shown of one kind. To ask for thousands of objects again and again would be most of the work
//! that the cluster has, and a list that is long enough breaks off on a busy machine.

use std::fmt::Debug;
use std::sync::Arc;

use futures::StreamExt as _;
use k8s_openapi::NamespaceResourceScope;
use kube::runtime::reflector::{Store, store};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

/// A kind that lies in namespaces and can be followed.
pub(super) trait Followed:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Followed for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// All objects of a kind in a namespace, as far as they are known yet; followed until it is dropped.
pub(super) struct Seen<K: Followed> {
    objects: Store<K>,
    _following: JoinSet<()>,
}

impl<K: Followed> Seen<K> {
    pub(super) fn of(client: &Client, namespace: &str) -> Self {
        let (objects, writer) = store();
        let api = Api::<K>::namespaced(client.clone(), namespace);
        let events = watcher(api, watcher::Config::default()).default_backoff().reflect(writer);
        let mut following = JoinSet::new();
        // What breaks off is begun anew by the watch itself.
        following.spawn(events.for_each(|_| std::future::ready(())));
        Self { objects, _following: following }
    }

    pub(super) fn all(&self) -> Vec<Arc<K>> {
        self.objects.state()
    }

    pub(super) fn count(&self, such: impl Fn(&K) -> bool) -> usize {
        self.all().iter().filter(|object| such(object)).count()
    }
}
