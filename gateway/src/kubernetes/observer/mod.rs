//! Puts together what the watches tell, and hands it on as whole snapshots: the fleet to the request path,
//! endpoints and standings to the pools. One task does this, change after change.

mod publishing;
mod standing;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use arc_swap::ArcSwap;
use flexinfer_core::backends::Launch;
use flexinfer_core::fleet::Fleet;
use flexinfer_core::ids::{EndpointId, GroupId, ModelId};
use flexinfer_core::planning::objects::names;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::DynamicObject;
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tracing::info;

use super::adapters::{Adapters, Moved};
use super::endpoints::{Endpoints, Owner};
use super::models::{Learnt, Models};
use super::orders::Dossiers;
use super::pools::Pools;
use super::said::Said;
use super::seen::Change;
use super::watching::News;
use crate::adapters::OnDemand;
use crate::metrics::Metrics;

/// Changes that are taken in before any of them is acted on.
const BATCH: usize = 256;

/// What the observer keeps in step.
pub(super) struct Served {
    pub(super) fleet: Arc<ArcSwap<Fleet>>,
    pub(super) pools: Arc<Pools>,
    pub(super) dossiers: Dossiers,
    pub(super) adapters: Arc<OnDemand>,
    pub(super) metrics: Arc<Metrics>,
    /// What is wrong with which object, for the status page.
    pub(super) complaints: Arc<Mutex<Vec<(String, String)>>>,
}

/// The state of the cluster, as far as a gateway needs it.
pub(super) struct Observer {
    served: Served,
    models: Models,
    adapters: Adapters,
    endpoints: Endpoints,
    /// What the controller and the gateways said last.
    said: HashMap<ModelId, Said>,
    owners: HashMap<Owner, ModelId>,
    /// The members of each sharing group.
    groups: HashMap<GroupId, Vec<ModelId>>,
    /// The endpoints that each model had.
    counts: HashMap<ModelId, HashSet<EndpointId>>,
    externals: HashMap<ModelId, (Launch, AbortHandle)>,
    /// Watches that have not told everything yet.
    incomplete: usize,
    ready: watch::Sender<bool>,
}

/// What one batch of changes concerns.
#[derive(Default)]
struct Concerned {
    fleet: bool,
    statuses: BTreeSet<ModelId>,
    owners: HashSet<Owner>,
    /// In the order in which they changed.
    adapters: Vec<Moved>,
}

impl Observer {
    /// An observer that waits for so many `watches` to tell everything, and then says so to `ready`.
    pub(super) fn new(served: Served, watches: usize, ready: watch::Sender<bool>) -> Self {
        Self {
            served,
            models: Models::default(),
            adapters: Adapters::default(),
            endpoints: Endpoints::default(),
            said: HashMap::new(),
            owners: HashMap::new(),
            groups: HashMap::new(),
            counts: HashMap::new(),
            externals: HashMap::new(),
            incomplete: watches,
            ready,
        }
    }

    /// Takes changes in until there are no watches any more.
    pub(super) async fn observe(mut self, mut news: mpsc::Receiver<News>) {
        let mut batch = Vec::with_capacity(BATCH);
        while news.recv_many(&mut batch, BATCH).await > 0 {
            let mut concerned = Concerned::default();
            for news in batch.drain(..) {
                self.take(news, &mut concerned);
            }
            self.act(concerned);
            if self.incomplete == 0
                && self.ready.send_if_modified(|ready| !std::mem::replace(ready, true))
            {
                info!(models = self.served.fleet.load().all().count(), "the cluster is known");
            }
        }
    }

    fn take(&mut self, news: News, concerned: &mut Concerned) {
        let complete = match news {
            News::Model(change) => self.model(change, concerned),
            News::Adapter(change) => self.adapter(change, concerned),
            News::Slice(change) => self.slice(change, concerned),
            News::Node(Change::Is(key, leaving)) => {
                concerned.owners.extend(self.endpoints.node(&key.name, leaving));
                false
            }
            News::Node(Change::Gone(key)) => {
                concerned.owners.extend(self.endpoints.node(&key.name, false));
                false
            }
            News::Node(Change::Complete) => true,
        };
        if complete {
            self.incomplete = self.incomplete.saturating_sub(1);
        }
    }

    fn model(&mut self, change: Change<DynamicObject>, concerned: &mut Concerned) -> bool {
        match change {
            Change::Is(key, object) => {
                let Learnt { id, changed, status } = self.models.learn(&key, object);
                concerned.fleet |= changed;
                let Some(id) = id else { return false };
                let said = Said::from(&status);
                if self.said.get(&id) != Some(&said) || changed {
                    self.said.insert(id.clone(), said);
                    concerned.statuses.insert(id);
                }
            }
            Change::Gone(key) => {
                if let Some(id) = self.models.forget(&key) {
                    self.said.remove(&id);
                    concerned.fleet = true;
                    concerned.statuses.insert(id);
                }
            }
            Change::Complete => return true,
        }
        false
    }

    fn adapter(&mut self, change: Change<DynamicObject>, concerned: &mut Concerned) -> bool {
        let moved = match change {
            Change::Is(key, object) => self.adapters.learn(&key, object),
            Change::Gone(key) => self.adapters.forget(&key).into_iter().collect(),
            Change::Complete => return true,
        };
        concerned.fleet |= !moved.is_empty();
        concerned.adapters.extend(moved);
        false
    }

    fn slice(&mut self, change: Change<EndpointSlice>, concerned: &mut Concerned) -> bool {
        match change {
            Change::Is(key, slice) => concerned.owners.extend(self.endpoints.put(key, &slice)),
            Change::Gone(key) => concerned.owners.extend(self.endpoints.remove(&key)),
            Change::Complete => return true,
        }
        false
    }

    /// Hands on what has changed: models before what concerns them.
    fn act(&mut self, concerned: Concerned) {
        let mut owners = concerned.owners;
        if concerned.fleet {
            owners.extend(self.publish());
        }
        for moved in &concerned.adapters {
            self.tell_engines(moved);
        }
        let began = Instant::now();
        for owner in &owners {
            self.list(owner);
        }
        if !owners.is_empty() {
            self.served.metrics.endpoints_refreshed(began.elapsed());
        }
        for group in self.concerned_groups(&concerned.statuses) {
            self.contend(&group);
        }
        for id in &concerned.statuses {
            self.stand(id);
        }
        let complaints = self.models.complaints();
        let told =
            complaints.map(|(key, text)| (format!("{}/{}", key.namespace, key.name), text.clone()));
        *self.served.complaints.lock() = told.collect();
    }
}

impl Owner {
    /// The owner that a model's Service and its slices name.
    fn of(id: &ModelId) -> Self {
        Self { namespace: id.namespace.to_string(), label: names::label_value(&id.name) }
    }
}
