//! Every model's pool, and the way of requests into them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use flexinfer_core::fleet::{Fleet, Served};
use flexinfer_core::ids::{BookingId, EndpointId, GroupId, ModelId, Ticket};
use flexinfer_core::moment::Moment;
use flexinfer_core::queueing::{
    EndpointState, Notice, Policy, Pool, PoolEffect, PoolView, Terms, Traffic,
};
use flexinfer_core::rejection::Rejection;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::queues::{Booking, Clock, Dispatch, Machine, Shell, Sorted, Wish};

/// The bits of a booking's number that count within one pool; those above tell pools apart, so that a
/// booking is never taken for one of a model's next life.
const BOOKING_BITS: u32 = 40;

/// What pools want done beyond answering requests.
#[derive(Debug)]
pub(crate) enum Order {
    Probe { model: ModelId, endpoint: EndpointId, address: SocketAddr },
    Report { model: ModelId, traffic: Traffic },
    Tell { model: ModelId, notice: Notice },
}

/// The pools of all models that are served.
pub(super) struct Pools {
    clock: Clock,
    policy: Policy,
    runtime: Handle,
    orders: mpsc::UnboundedSender<Order>,
    tickets: AtomicU64,
    fleet: ArcSwap<Fleet>,
    shells: ArcSwap<HashMap<ModelId, Arc<Shell<Pool>>>>,
    /// Held while the models change; counts the pools made.
    changing: Mutex<u64>,
}

impl Pools {
    /// No pools yet. What they decide goes to `orders`; their timers run on `runtime`.
    pub(super) fn new(
        policy: Policy,
        orders: mpsc::UnboundedSender<Order>,
        runtime: Handle,
    ) -> Arc<Self> {
        Arc::new(Self {
            clock: Clock::start(),
            policy,
            runtime,
            orders,
            tickets: AtomicU64::new(0),
            fleet: ArcSwap::default(),
            shells: ArcSwap::default(),
            changing: Mutex::new(0),
        })
    }

    /// The fleet is now this one: its models have pools, all others are removed. Which are new.
    pub(super) fn configure(&self, fleet: Arc<Fleet>) -> Vec<ModelId> {
        let mut made = self.changing.lock();
        let before = self.shells.load_full();
        let mut shells = HashMap::with_capacity(before.len());
        let mut new = Vec::new();
        for served in fleet.all() {
            let (id, terms) = (&served.effective.id, Terms::from(&served.effective));
            let shell = if let Some(known) = before.get(id) {
                known.act(|pool, now| pool.configure(now, terms));
                Arc::clone(known)
            } else {
                *made += 1;
                new.push(id.clone());
                self.shell(terms, *made)
            };
            shells.insert(id.clone(), shell);
        }
        let gone: Vec<Arc<Shell<Pool>>> = before
            .iter()
            .filter(|(id, _)| !shells.contains_key(id))
            .map(|(_, shell)| Arc::clone(shell))
            .collect();
        self.fleet.store(fleet);
        self.shells.store(Arc::new(shells));
        for shell in gone {
            shell.act(Pool::remove);
        }
        new
    }

    fn shell(&self, terms: Terms, number: u64) -> Arc<Shell<Pool>> {
        let id = GroupId::Alone(terms.id.clone());
        let pool = Pool::new(self.policy, terms, number << BOOKING_BITS);
        Shell::start(id, pool, self.clock, self.orders.clone(), &self.runtime)
    }

    /// Puts an event into a model's pool, if it has one.
    pub(super) fn act(
        &self,
        id: &ModelId,
        event: impl FnOnce(&mut Pool, Moment) -> Vec<PoolEffect>,
    ) {
        if let Some(shell) = self.get(id) {
            shell.act(event);
        }
    }

    /// Whether the endpoint still has to be asked.
    pub(super) fn in_question(
        &self,
        id: &ModelId,
        endpoint: &EndpointId,
        address: SocketAddr,
    ) -> bool {
        self.get(id).is_some_and(|shell| shell.look(|pool| pool.in_question(endpoint, address)))
    }

    /// One model as it is now.
    pub(super) fn view(&self, id: &ModelId) -> Option<PoolView> {
        self.get(id).map(|shell| shell.look(Pool::view))
    }

    /// All models as they are now, sorted.
    pub(super) fn views(&self) -> Vec<PoolView> {
        let shells = self.shells.load();
        let mut views: Vec<PoolView> =
            shells.values().map(|shell| shell.look(Pool::view)).collect();
        views.sort_by(|a, b| a.id.cmp(&b.id));
        views
    }

    /// The clock that the moments in views count by.
    pub(super) fn clock(&self) -> Clock {
        self.clock
    }

    /// The model as it is served now.
    pub(super) fn served(&self, id: &ModelId) -> Option<Arc<Served>> {
        self.fleet.load().get(id).cloned()
    }

    fn get(&self, id: &ModelId) -> Option<Arc<Shell<Pool>>> {
        self.shells.load().get(id).map(Arc::clone)
    }

    async fn slot(self: Arc<Self>, served: Arc<Served>, wish: Wish) -> Result<Booking, Rejection> {
        let id = &served.effective.id;
        let Some(shell) = self.get(id) else {
            return Err(Rejection::ModelRemoved { model: id.clone() });
        };
        let ticket = Ticket(self.tickets.fetch_add(1, Ordering::Relaxed));
        let slot = shell.wait(ticket, |pool, now| pool.arrive(now, ticket, wish)).await?;
        // The wait can have outlasted a change of the model: its name for the engine is today's.
        let served = self.fleet.load().get(id).map_or(served, Arc::clone);
        let guard = slot.guard;
        let mut booking = Booking::new(slot.booking, served, slot.address, move |_| drop(guard));
        booking.endpoint = slot.endpoint;
        Ok(booking)
    }
}

impl Dispatch for Arc<Pools> {
    fn engines(&self, model: &ModelId) -> Option<Vec<EndpointId>> {
        let endpoints = self.view(model).map(|view| view.endpoints).unwrap_or_default();
        Some(endpoints.into_iter().map(|endpoint| endpoint.id).collect())
    }

    fn is_up(&self, model: &ModelId) -> bool {
        let endpoints = self.view(model).map(|view| view.endpoints).unwrap_or_default();
        endpoints.iter().any(|endpoint| endpoint.state != EndpointState::Leaving)
    }

    fn book(
        &self,
        served: Arc<Served>,
        wish: Wish,
    ) -> BoxFuture<'static, Result<Booking, Rejection>> {
        Box::pin(Arc::clone(self).slot(served, wish))
    }

    fn rebook(
        &self,
        failed: Booking,
        wish: Wish,
    ) -> BoxFuture<'static, Result<Booking, Rejection>> {
        let pools = Arc::clone(self);
        Box::pin(async move {
            let served = Arc::clone(&failed.served);
            let booking: BookingId = failed.id;
            pools.act(&served.effective.id, |pool, now| pool.unreachable(now, booking));
            drop(failed);
            pools.slot(served, wish).await
        })
    }
}

impl Machine for Pool {
    type Effect = PoolEffect;
    type Order = Order;

    fn leave(&mut self, now: Moment, ticket: Ticket) -> Vec<PoolEffect> {
        self.leave(now, ticket)
    }

    fn finish(&mut self, now: Moment, booking: BookingId) -> Vec<PoolEffect> {
        self.finish(now, booking)
    }

    fn tick(&mut self, now: Moment) -> Vec<PoolEffect> {
        self.tick(now)
    }

    fn wake_at(&self, now: Moment) -> Option<Moment> {
        self.wake_at(now)
    }

    fn sort(effect: PoolEffect) -> Sorted<Order> {
        match effect {
            PoolEffect::Grant { ticket, booking, endpoint, address } => {
                Sorted::Grant { ticket, booking, address, endpoint: Some(endpoint) }
            }
            PoolEffect::Reject { ticket, rejection } => Sorted::Reject { ticket, rejection },
            PoolEffect::Probe { model, endpoint, address } => {
                Sorted::Order(Order::Probe { model, endpoint, address })
            }
            PoolEffect::Report { model, traffic } => {
                Sorted::Order(Order::Report { model, traffic })
            }
            PoolEffect::Tell { model, notice } => Sorted::Order(Order::Tell { model, notice }),
        }
    }
}
