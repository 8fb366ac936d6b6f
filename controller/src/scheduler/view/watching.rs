//! The watches that keep the view. A watch that breaks off goes on with what was known, and lists anew.

use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;

use flexinfer_crds::keys;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch_objects};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;

use super::nodes::Nodes;
use super::pods::Pods;
use super::results::{All, OfDeployments};
use super::{Shelf, View};
use crate::scheduler::arguments::Arguments;
use crate::scheduler::metrics::Metrics;

/// Begins all watches; each goes on until it is aborted.
pub(in crate::scheduler) fn watch(
    client: &Client,
    arguments: &Arguments,
    view: &Arc<View>,
    metrics: &Metrics,
) -> Vec<JoinHandle<()>> {
    let watching = || Watching {
        view: Arc::clone(view),
        metrics: metrics.clone(),
        tenant_label: arguments.tenant_label().map(str::to_owned),
    };
    let every = watcher::Config::default();
    let named = every.clone().fields(&format!("metadata.name={}", arguments.results));
    let labelled = every.clone().labels(&format!("app={}", keys::BENCHMARKS_APP));
    let results: Api<ConfigMap> = Api::namespaced(client.clone(), &arguments.namespace);
    let nodes: Api<Node> = Api::all(client.clone());
    let pods: Api<Pod> = Api::all(client.clone());
    let of_deployments: Api<ConfigMap> = Api::all(client.clone());
    vec![
        tokio::spawn(watching().follow::<Node, Nodes>(nodes, every.clone(), "nodes")),
        tokio::spawn(watching().follow::<Pod, Pods>(pods, every, "pods")),
        tokio::spawn(watching().follow::<ConfigMap, All>(results, named, "results")),
        tokio::spawn(watching().follow::<ConfigMap, OfDeployments>(
            of_deployments,
            labelled,
            "results_of_deployments",
        )),
    ]
}

struct Watching {
    view: Arc<View>,
    metrics: Metrics,
    tenant_label: Option<String>,
}

impl Watching {
    async fn follow<K, S>(self, api: Api<K>, config: watcher::Config, what: &'static str)
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
        S: Shelf<K>,
    {
        let mut events = pin!(watch_objects(api, config).default_backoff());
        let mut shown = Vec::new();
        while let Some(event) = events.next().await {
            let tenant_label = self.tenant_label.as_deref();
            match event {
                Ok(Event::Init) => shown.clear(),
                Ok(Event::InitApply(object)) => shown.push(S::read(&object, tenant_label)),
                Ok(Event::InitDone) => {
                    let all = std::mem::take(&mut shown);
                    tracing::info!(what, count = all.len(), "listed");
                    S::of(&mut self.view.state.write()).replace(all);
                }
                Ok(Event::Apply(object)) => {
                    let (key, kept) = S::read(&object, tenant_label);
                    S::of(&mut self.view.state.write()).put(key, kept);
                }
                Ok(Event::Delete(object)) => {
                    let (key, _) = S::read(&object, tenant_label);
                    S::of(&mut self.view.state.write()).put(key, None);
                }
                Err(error) => {
                    self.metrics.watch_failed(what);
                    tracing::warn!(what, error = %error, "a watch broke off and is begun again");
                }
            }
        }
    }
}
