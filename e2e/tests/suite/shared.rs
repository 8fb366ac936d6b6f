//! One cluster for the tests that only need a namespace of it, gone with the last of them. And waiting.

use std::sync::{Arc, Weak};
use std::time::Duration;

use flexinfer_e2e::Cluster;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;
use tokio::sync::{Mutex, OnceCell};
use tokio::time::{Instant, sleep};

/// A namespace of a cluster that other tests use too.
pub(crate) struct World {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) client: Client,
    pub(crate) namespace: String,
    /// Done once the chart's rights are there.
    pub(crate) rights: OnceCell<()>,
}

impl World {
    /// A namespace of the test's own, with the service account that pods need.
    pub(crate) async fn new() -> Self {
        Self::of(shared_cluster().await).await
    }

    /// The same of a cluster that only some tests share.
    pub(crate) async fn of(cluster: Arc<Cluster>) -> Self {
        let client = cluster.client().unwrap();
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let new = json!({ "metadata": { "generateName": "test-" } });
        let new = serde_json::from_value(new).unwrap();
        let made = namespaces.create(&PostParams::default(), &new).await.unwrap();
        let namespace = made.metadata.name.unwrap();
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &namespace);
        eventually("the namespace has a service account", async || {
            accounts.get("default").await.is_ok().then_some(())
        })
        .await;
        Self { cluster, client, namespace, rights: OnceCell::new() }
    }
}

async fn shared_cluster() -> Arc<Cluster> {
    static SHARED: Mutex<Weak<Cluster>> = Mutex::const_new(Weak::new());
    let mut shared = SHARED.lock().await;
    if let Some(cluster) = shared.upgrade() {
        return cluster;
    }
    let cluster = Arc::new(start().await);
    *shared = Arc::downgrade(&cluster);
    cluster
}

/// A cluster of the test's own.
pub(crate) async fn start() -> Cluster {
    match Cluster::start().await {
        Ok(cluster) => cluster,
        Err(error) => panic!("no cluster: {error}: {:?}", std::error::Error::source(&error)),
    }
}

/// Whether there is time for what takes minutes: `cargo xtask test --full`.
pub(crate) fn full() -> bool {
    std::env::var_os("FLEXINFER_FULL").is_some()
}

/// What `look` finds, as soon as it finds it.
pub(crate) async fn eventually<T>(awaited: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "it did not come: {awaited}");
        sleep(Duration::from_millis(50)).await;
    }
}
