//! The watches: one task each, which goes on for ever. While the API server is away they try again; what
//! they miss, the next list tells.

use std::fmt::Debug;
use std::time::Duration;

use flexinfer_crds::{LoRAAdapter, Model, keys};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::utils::Backoff;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tracing::{debug, info, warn};

use super::endpoints::is_leaving;
use super::seen::{Change, Seen};
use crate::settings::Scope;

const NODES: &str = "Nodes";
const ADAPTERS: &str = "LoRAAdapters";

/// What is done without where it may not be read, or where the cluster does not know it.
const SPARED: [&str; 2] = [NODES, ADAPTERS];

/// Changes that may wait for the observer; more hold up the watch.
pub(super) const BACKLOG: usize = 1024;

/// Which object of its kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Key {
    pub(super) fn of(object: &impl ResourceExt) -> Self {
        Self { namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
    }
}

/// What a watch tells the observer.
#[derive(Debug)]
pub(super) enum News {
    Model(Change<DynamicObject>),
    Adapter(Change<DynamicObject>),
    Slice(Change<EndpointSlice>),
    /// Whether it is about to go.
    Node(Change<bool>),
}

/// Watches what a gateway has to know, and tells `news` of it. Returns the number of watches: each says
/// once that it is complete.
pub(super) fn start(client: &Client, scope: &Scope, news: &mpsc::Sender<News>) -> usize {
    // Untyped: one that does not fit our types must not keep the others from being read.
    let models = ApiResource::erase::<Model>(&());
    let adapters = ApiResource::erase::<LoRAAdapter>(&());
    let slices = watcher::Config::default().labels(keys::MODEL);
    let everything = watcher::Config::default();
    let nodes: Api<Node> = Api::all(client.clone());
    tokio::spawn(follow(NODES, nodes, everything.clone(), news.clone(), |change| {
        News::Node(change.map(|node| is_leaving(&node)))
    }));
    let scopes: Vec<Option<&str>> = match scope {
        Scope::All => vec![None],
        Scope::Namespaces(namespaces) => {
            namespaces.iter().map(|namespace| Some(namespace.as_ref())).collect()
        }
    };
    let untyped = |namespace: Option<&str>, kind: &ApiResource| -> Api<DynamicObject> {
        let all = || Api::all_with(client.clone(), kind);
        namespace
            .map_or_else(all, |namespace| Api::namespaced_with(client.clone(), namespace, kind))
    };
    let count = 1 + 3 * scopes.len();
    for namespace in scopes {
        let (models, adapters) = (untyped(namespace, &models), untyped(namespace, &adapters));
        let all_slices = || Api::<EndpointSlice>::all(client.clone());
        let in_slices = namespace
            .map_or_else(all_slices, |namespace| Api::namespaced(client.clone(), namespace));
        tokio::spawn(follow("Models", models, everything.clone(), news.clone(), News::Model));
        tokio::spawn(follow(ADAPTERS, adapters, everything.clone(), news.clone(), News::Adapter));
        tokio::spawn(follow(
            "EndpointSlices",
            in_slices,
            slices.clone(),
            news.clone(),
            News::Slice,
        ));
    }
    count
}

async fn follow<K>(
    kind: &'static str,
    api: Api<K>,
    config: watcher::Config,
    news: mpsc::Sender<News>,
    told: fn(Change<K>) -> News,
) where
    K: kube::Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut seen = Seen::default();
    let (mut away, mut complete) = (false, false);
    let mut events = std::pin::pin!(watcher(api, config).backoff(Patience::default()));
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                // Expired versions and ended connections are a watch's daily life; told once until it
                // works again.
                // Whoever may not read nodes serves without knowing which of them are about to go.
                let spared = SPARED.contains(&kind) && not_to_be_had(&error);
                if spared && !std::mem::replace(&mut complete, true) {
                    let _ = news.send(told(Change::Complete)).await;
                }
                if std::mem::replace(&mut away, true) {
                    debug!(kind, %error, "the watch still fails");
                } else {
                    warn!(
                        kind,
                        error = chain(&error),
                        "the watch failed; serving on from what is known"
                    );
                }
                continue;
            }
        };
        // A list begins whether or not anybody answers.
        if !matches!(event, watcher::Event::Init) && std::mem::take(&mut away) {
            info!(kind, "the watch works again");
        }
        for change in seen.take(event) {
            if matches!(change, Change::Complete) && std::mem::replace(&mut complete, true) {
                continue;
            }
            if news.send(told(change)).await.is_err() {
                return;
            }
        }
    }
}

fn not_to_be_had(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::InitialListFailed(kube::Error::Api(status))
        if [403, 404].contains(&status.code))
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let said = error.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        source = error.source();
    }
    text
}

/// The pauses between tries: short at first, never long, since demand waits for what is missed.
#[derive(Debug, Default)]
struct Patience {
    failures: u32,
}

impl Patience {
    const FIRST: Duration = Duration::from_millis(200);
    const LONGEST: Duration = Duration::from_secs(5);
}

impl Iterator for Patience {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let factor = 2_u32.checked_pow(self.failures).unwrap_or(u32::MAX);
        self.failures = self.failures.saturating_add(1);
        let pause = Self::FIRST.saturating_mul(factor).min(Self::LONGEST);
        // Spread, so that many gateways do not come back at the same moment.
        Some(pause.mul_f64(0.5 + 0.5 * rand::random::<f64>()))
    }
}

impl Backoff for Patience {
    fn reset(&mut self) {
        self.failures = 0;
    }
}
