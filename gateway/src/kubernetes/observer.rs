//! Puts together what the watches tell, and hands it on as whole snapshots: the fleet to the request path,
//! endpoints and standings to the pools. One task does this, change after change.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use flexinfer_core::activation::{Stage, Standing};
use flexinfer_core::backends::Launch;
use flexinfer_core::fleet::Fleet;
use flexinfer_core::ids::{EndpointId, GroupId, ModelId};
use flexinfer_core::planning::objects::names;
use jiff::Timestamp;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::DynamicObject;
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tracing::info;

use super::adapters::{Adapters, Moved};
use super::endpoints::{Endpoints, Owner};
use super::external;
use super::models::{Engine, Learnt, Models};
use super::orders::{Dossier, Dossiers};
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

    /// Has the engines that are up load an adapter, or take it out. One that comes up meanwhile is asked by what was
    /// published before this.
    fn tell_engines(&self, moved: &Moved) {
        let Some(backend) = self.models.backend(&moved.base) else { return };
        let fleet = self.served.fleet.load();
        let Some(served) = fleet.get(&moved.base) else { return };
        for listed in self.endpoints.of(&Owner::of(&moved.base)) {
            moved.asked(backend).ask(&self.served.adapters, served, listed.address).for_each(drop);
        }
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

    /// Publishes the fleet. Whose endpoints have to be listed then, since their pools are new.
    fn publish(&mut self) -> Vec<Owner> {
        let fleet = Arc::new(self.models.fleet(self.adapters.listed()));
        self.served.metrics.know(fleet.listed().map(|served| served.name()));
        {
            let mut dossiers = self.served.dossiers.lock();
            dossiers.retain(|id, _| fleet.get(id).is_some());
            for id in fleet.all().map(|served| &served.effective.id) {
                let Some(engine) = self.models.engine(id) else { continue };
                let said = self.said.get(id).cloned().unwrap_or_default();
                let Said { last_active, entries, .. } = said;
                let engine = engine.clone();
                let backend = self.models.backend(id);
                let adapters = backend.map(|backend| self.adapters.asked(id, backend));
                dossiers.insert(id.clone(), Dossier { engine, adapters, last_active, entries });
            }
        }
        // Pools first: whoever finds a model in the fleet finds its pool.
        let new = self.served.pools.configure(Arc::clone(&fleet));
        self.served.fleet.store(Arc::clone(&fleet));
        self.counts.retain(|id, _| fleet.get(id).is_some());
        let ids = fleet.all().map(|served| &served.effective.id);
        self.owners = ids.map(|id| (Owner::of(id), id.clone())).collect();
        self.groups.clear();
        for effective in fleet.all().map(|served| &served.effective) {
            if matches!(effective.group, GroupId::Shared { .. }) {
                self.groups.entry(effective.group.clone()).or_default().push(effective.id.clone());
            }
        }
        self.follow_externals(&fleet);
        for id in &new {
            self.stand(id);
        }
        new.iter().map(Owner::of).collect()
    }

    fn follow_externals(&mut self, fleet: &Fleet) {
        let models = &self.models;
        self.externals.retain(|id, (launch, task)| {
            let stays =
                matches!(models.engine(id), Some(Engine::External(now)) if **now == *launch);
            if !stays {
                task.abort();
            }
            stays
        });
        for id in fleet.all().map(|served| &served.effective.id) {
            if let Some(Engine::External(launch)) = self.models.engine(id)
                && !self.externals.contains_key(id)
            {
                let pools = Arc::downgrade(&self.served.pools);
                let task = tokio::spawn(external::follow(pools, id.clone(), (**launch).clone()));
                self.externals.insert(id.clone(), ((**launch).clone(), task.abort_handle()));
            }
        }
    }

    fn list(&mut self, owner: &Owner) {
        let Some(id) = self.owners.get(owner).cloned() else { return };
        if !matches!(self.models.engine(&id), Some(Engine::Listed(_))) {
            return;
        }
        let listed = self.endpoints.of(owner);
        let now: HashSet<_> = listed.iter().map(|listed| listed.id.clone()).collect();
        let before = self.counts.insert(id.clone(), now.clone()).unwrap_or_default();
        if let Some(served) = self.served.fleet.load().get(&id) {
            let series = self.served.metrics.model(served.name());
            for _ in now.difference(&before) {
                series.endpoint_changed(true);
            }
            for _ in before.difference(&now) {
                series.endpoint_changed(false);
            }
        }
        self.served.pools.act(&id, |pool, now| pool.list(now, listed));
    }

    fn stand(&self, id: &ModelId) {
        let Some(said) = self.said.get(id) else { return };
        if let Some(dossier) = self.served.dossiers.lock().get_mut(id) {
            dossier.last_active = said.last_active;
            dossier.entries.clone_from(&said.entries);
        }
        // How an external engine stands, its follower finds out.
        if matches!(self.models.engine(id), Some(Engine::Listed(_))) {
            let (held_by, stage) = (self.holder(id), self.stage(id, said));
            let standing = Standing { held_by, stage, ..said.standing.clone() };
            let ahead = |moment: Timestamp| moment.duration_since(Timestamp::now()).try_into().ok();
            let ahead: Option<Duration> = said.not_before.and_then(ahead);
            self.served.pools.act(id, |pool, now| {
                pool.stand(now, Standing { not_before: ahead.map(|ahead| now + ahead), ..standing })
            });
        }
    }

    /// What those who wait for a model wait for, by what is said of its group.
    fn stage(&self, id: &ModelId, said: &Said) -> Stage {
        let stage = said.standing.stage;
        if said.not_before.is_some() {
            return stage;
        }
        let fleet = self.served.fleet.load();
        let group = fleet.get(id).and_then(|served| self.groups.get(&served.effective.group));
        let others = group.into_iter().flatten().filter(|other| *other != id);
        stage.among(others.filter_map(|other| Some(self.said.get(other)?.place())))
    }

    fn concerned_groups(&self, ids: &BTreeSet<ModelId>) -> HashSet<GroupId> {
        let fleet = self.served.fleet.load();
        let group = |id| Some(fleet.get(id)?.effective.group.clone());
        ids.iter().filter_map(group).filter(|group| self.groups.contains_key(group)).collect()
    }

    /// Whoever keeps another member of its group waiting reports at once, and those who wait learn who
    /// holds the GPU.
    fn contend(&self, group: &GroupId) {
        let members = self.groups.get(group).map(Vec::as_slice).unwrap_or_default();
        let wanted = |id: &ModelId| self.said.get(id).is_some_and(|said| said.wanted);
        let all = members.iter().filter(|id| wanted(id)).count();
        for id in members {
            let others = all - usize::from(wanted(id));
            self.served.pools.act(id, |pool, now| pool.contend(now, others > 0));
            self.stand(id);
        }
    }

    /// The member of its group that keeps `id` from the GPU whatever happens: it has it, a higher
    /// priority, and no idle timeout.
    fn holder(&self, id: &ModelId) -> Option<ModelId> {
        let fleet = self.served.fleet.load();
        let own = &fleet.get(id)?.effective;
        let holds = |other: &&ModelId| {
            let Some(served) = fleet.get(other).filter(|_| *other != id) else { return false };
            let stays = served.effective.min_replicas > 0 || served.effective.force_promotion;
            let higher = served.effective.priority > own.priority;
            stays && higher && self.said.get(*other).is_some_and(|said| said.holds)
        };
        self.groups.get(&own.group)?.iter().find(holds).cloned()
    }
}

impl Owner {
    /// The owner that a model's Service and its slices name.
    fn of(id: &ModelId) -> Self {
        Self { namespace: id.namespace.to_string(), label: names::label_value(&id.name) }
    }
}
