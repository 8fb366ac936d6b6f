//! Every sharing group of this gateway: finds a model's group, and keeps groups and fleet together.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use flexinfer_core::activation::Report;
use flexinfer_core::fleet::{Fleet, Served};
use flexinfer_core::ids::{EndpointId, GroupId, InstanceId, ModelId, Ticket};
use flexinfer_core::queueing::{Group, MemberView, Phase, Policy, Terms};
use flexinfer_core::rejection::Rejection;
use flexinfer_core::sharing::Capacity;
use foldhash::fast::RandomState;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::clock::Clock;
use super::platform::{self, Order, Platform};
use super::shell::{Shell, Slot};
use super::{Booking, Budgets, Dispatch, Wish};

/// How long a request pauses before it asks for another slot after an engine took no connection:
/// if the engine has died, its platform says so meanwhile.
const BEFORE_ANOTHER_TRY: Duration = Duration::from_millis(50);

/// The bits of an instance number that count within one group; those above say which group.
const INSTANCE_BITS: u32 = 32;

/// The queues of all models.
pub struct Queues {
    clock: Clock,
    policy: Policy,
    budgets: Budgets,
    runtime: Handle,
    orders: mpsc::UnboundedSender<Order>,
    tickets: AtomicU64,
    fleet: ArcSwap<Fleet>,
    routes: ArcSwap<Routes>,
    /// Held while the members change, so that two changes do not mix.
    changing: Mutex<u64>,
}

/// Which shell a model or an instance belongs to.
#[derive(Clone, Default)]
struct Routes {
    models: HashMap<ModelId, Arc<Shell<Group>>, RandomState>,
    groups: HashMap<GroupId, Arc<Shell<Group>>>,
    numbers: HashMap<u64, Arc<Shell<Group>>>,
}

/// One group as it can be seen.
#[derive(Clone, Debug)]
pub struct GroupView {
    /// Which group.
    pub id: GroupId,
    /// What fits into it at the same time.
    pub capacity: Capacity,
    /// Its members.
    pub members: Vec<MemberView>,
}

impl Queues {
    /// Queues without members. Whatever they decide goes to `platform`, in order, from a task on `runtime`.
    pub fn new(
        policy: Policy,
        budgets: Budgets,
        platform: Arc<dyn Platform>,
        runtime: Handle,
    ) -> Arc<Self> {
        let (orders, receiver) = mpsc::unbounded_channel();
        runtime.spawn(platform::carry_out(receiver, platform));
        Arc::new(Self {
            clock: Clock::start(),
            policy,
            budgets,
            runtime,
            orders,
            tickets: AtomicU64::new(0),
            fleet: ArcSwap::default(),
            routes: ArcSwap::default(),
            changing: Mutex::new(0),
        })
    }

    /// The fleet is now this one: its models are served, all others leave.
    pub fn configure(&self, fleet: Arc<Fleet>) {
        let mut groups_made = self.changing.lock();
        let mut members: HashMap<GroupId, Vec<Terms>> = HashMap::new();
        for served in fleet.all() {
            let terms = Terms::from(&served.effective);
            members.entry(served.effective.group.clone()).or_default().push(terms);
        }
        self.fleet.store(fleet);

        let mut routes = Routes::clone(&self.routes.load());
        routes.models.clear();
        routes.groups.retain(|id, shell| members.contains_key(id) || !shell.spent());
        routes.numbers.retain(|_, shell| routes.groups.contains_key(shell.id()));
        for (id, terms) in &members {
            let shell = routes.groups.entry(id.clone()).or_insert_with(|| {
                *groups_made += 1;
                let number = *groups_made;
                let shell = self.shell(id.clone(), number);
                routes.numbers.insert(number, Arc::clone(&shell));
                shell
            });
            let models = terms.iter().map(|terms| (terms.id.clone(), Arc::clone(shell)));
            routes.models.extend(models);
        }
        // A group that lost members lets them go before another that gained them takes them in.
        let (known, new): (Vec<_>, Vec<_>) = routes
            .groups
            .iter()
            .map(|(id, shell)| (Arc::clone(shell), members.remove(id).unwrap_or_default()))
            .partition(|(shell, _)| !shell.unused());
        self.routes.store(Arc::new(routes));
        for (shell, terms) in known.into_iter().chain(new) {
            shell.act(|group, now| group.configure(now, terms));
        }
    }

    fn shell(&self, id: GroupId, number: u64) -> Arc<Shell<Group>> {
        let capacity = self.budgets.capacity(&id);
        let first_instance = number << INSTANCE_BITS;
        let group = Group::new(self.policy, capacity, first_instance);
        Shell::start(id, group, self.clock, self.orders.clone(), &self.runtime)
    }

    /// An engine's life has moved on.
    pub fn report(&self, report: Report) {
        let instance = match &report {
            Report::Progress { instance, .. }
            | Report::Ready { instance, .. }
            | Report::Failed { instance, .. }
            | Report::Gone { instance } => *instance,
        };
        let routes = self.routes.load();
        if let Some(shell) = routes.numbers.get(&group_number(instance)) {
            shell.act(|group, now| group.report(now, report, rand::random::<f64>()));
        }
    }

    /// Every group as it is now, sorted.
    pub fn view(&self) -> Vec<GroupView> {
        let routes = self.routes.load();
        let mut views: Vec<GroupView> = routes
            .groups
            .iter()
            .map(|(id, shell)| GroupView {
                id: id.clone(),
                capacity: self.budgets.capacity(id),
                members: shell.view(),
            })
            .filter(|view| !view.members.is_empty())
            .collect();
        views.sort_by(|a, b| a.id.cmp(&b.id));
        views
    }

    /// One model as it is now.
    pub fn member(&self, id: &ModelId) -> Option<MemberView> {
        let shell = Arc::clone(self.routes.load().models.get(id)?);
        shell.view().into_iter().find(|member| member.id == *id)
    }

    /// The clock that the moments in views count by.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    async fn slot(self: Arc<Self>, served: Arc<Served>) -> Result<Booking, Rejection> {
        let id = &served.effective.id;
        let slot = match self.wait(id).await {
            // It has moved to another group, where it is served as before.
            Err(Rejection::ModelRemoved { .. }) if self.fleet.load().get(id).is_some() => {
                self.wait(id).await?
            }
            slot => slot?,
        };
        // The wait can have outlasted a change of the model: its name for the engine is today's.
        let served = self.fleet.load().get(id).map_or(served, Arc::clone);
        Ok(Booking::new(slot.booking, served, slot.address, move |_| drop(slot.guard)))
    }
}

impl Queues {
    async fn wait(&self, id: &ModelId) -> Result<Slot<Group>, Rejection> {
        let shell = self.routes.load().models.get(id).map(Arc::clone);
        let Some(shell) = shell else { return Err(Rejection::ModelRemoved { model: id.clone() }) };
        let ticket = Ticket(self.tickets.fetch_add(1, Ordering::Relaxed));
        shell.wait(ticket, |group, now| group.arrive(now, ticket, id)).await
    }
}

impl Dispatch for Arc<Queues> {
    fn engines(&self, _model: &ModelId) -> Option<Vec<EndpointId>> {
        None
    }

    fn is_up(&self, model: &ModelId) -> bool {
        self.member(model).is_some_and(|member| member.phase == Phase::Ready)
    }

    // A model has one engine here: there is nothing to choose.
    fn book(
        &self,
        served: Arc<Served>,
        _wish: Wish,
    ) -> BoxFuture<'static, Result<Booking, Rejection>> {
        Box::pin(Arc::clone(self).slot(served))
    }

    fn rebook(
        &self,
        failed: Booking,
        _wish: Wish,
    ) -> BoxFuture<'static, Result<Booking, Rejection>> {
        let queues = Arc::clone(self);
        Box::pin(async move {
            let served = Arc::clone(&failed.served);
            drop(failed);
            tokio::time::sleep(BEFORE_ANOTHER_TRY).await;
            queues.slot(served).await
        })
    }
}

fn group_number(instance: InstanceId) -> u64 {
    instance.0 >> INSTANCE_BITS
}
