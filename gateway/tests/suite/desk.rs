//! Hands out slots on whatever engines a test says.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use flexinfer_core::fleet::Served;
use flexinfer_core::ids::{BookingId, EndpointId, ModelId};
use flexinfer_core::openai::Liveness;
use flexinfer_core::rejection::Rejection;
use flexinfer_core::routing::{Roster, Strategy};
use flexinfer_gateway::queues::{Booking, Dispatch, Wish};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;

/// Hands out slots on engines that tests set up; the gate makes requests wait.
pub(crate) struct Desk {
    engines: Mutex<HashMap<String, SocketAddr>>,
    open: watch::Sender<bool>,
    next: AtomicU64,
    held: Arc<AtomicUsize>,
    waiting: Arc<AtomicUsize>,
    booked: AtomicUsize,
    rebooked: AtomicUsize,
    /// Several engines to choose from, for all models.
    roster: Arc<Mutex<Option<Roster<EndpointId>>>>,
    /// What requests asked for, in their order.
    wishes: Mutex<Vec<Wish>>,
    /// Where a request goes whose first engine took no connection.
    spare: Mutex<Option<SocketAddr>>,
    /// The models that are awake.
    awake: Mutex<HashSet<String>>,
    /// The models that have no engine until they are woken.
    asleep: Mutex<HashSet<String>>,
}

fn endpoint(address: &SocketAddr) -> EndpointId {
    EndpointId(address.to_string().into())
}

/// Counts one for as long as it lives.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Desk {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            engines: Mutex::default(),
            open: watch::Sender::new(true),
            next: AtomicU64::new(1),
            held: Arc::default(),
            waiting: Arc::default(),
            booked: AtomicUsize::new(0),
            rebooked: AtomicUsize::new(0),
            roster: Arc::default(),
            wishes: Mutex::default(),
            spare: Mutex::default(),
            awake: Mutex::default(),
            asleep: Mutex::default(),
        })
    }

    /// Requests wait from now on.
    pub(crate) fn close(&self) {
        self.open.send_replace(false);
    }

    /// Requests wait no more.
    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }

    pub(crate) fn set_engine(&self, model: &str, address: SocketAddr) {
        self.engines.lock().insert(model.to_owned(), address);
    }

    /// Requests for the model are refused as if its queue were full.
    pub(crate) fn forget_engine(&self, model: &str) {
        self.engines.lock().remove(model);
    }

    pub(crate) fn set_spare(&self, address: SocketAddr) {
        *self.spare.lock() = Some(address);
    }

    /// From now on the model is awake.
    pub(crate) fn wake(&self, model: &str) {
        self.awake.lock().insert(model.to_owned());
        self.asleep.lock().remove(model);
    }

    /// From now on the model has no engine.
    pub(crate) fn sleep(&self, model: &str) {
        self.awake.lock().remove(model);
        self.asleep.lock().insert(model.to_owned());
    }

    /// How the model is doing.
    pub(crate) fn liveness(&self, model: &Served) -> Liveness {
        let ready = self.awake.lock().contains(model.name());
        Liveness { ready, phase: if ready { "Ready" } else { "Idle" }, load: 0 }
    }

    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::SeqCst)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    pub(crate) fn booked(&self) -> usize {
        self.booked.load(Ordering::SeqCst)
    }

    pub(crate) fn rebooked(&self) -> usize {
        self.rebooked.load(Ordering::SeqCst)
    }

    /// Requests for all models are spread over these engines.
    pub(crate) fn spread(&self, strategy: Strategy, engines: &[SocketAddr]) {
        let mut roster = Roster::new(strategy, None);
        let ids: Vec<_> = engines.iter().map(endpoint).collect();
        roster.set_members(ids.clone());
        for id in &ids {
            roster.set_open(id, true);
        }
        *self.roster.lock() = Some(roster);
    }

    /// One of them takes requests, or none for now.
    pub(crate) fn set_open(&self, engine: SocketAddr, open: bool) {
        if let Some(roster) = self.roster.lock().as_mut() {
            roster.set_open(&endpoint(&engine), open);
        }
    }

    /// What only an engine had that is gone is told to be so, as on a cluster.
    fn forsakes(&self, wish: &Wish) -> Result<(), Rejection> {
        let Some((holder, what)) = wish.holder.as_ref().zip(wish.insists.as_ref()) else {
            return Ok(());
        };
        let roster = self.roster.lock();
        match roster.as_ref() {
            Some(roster) if roster.members().all(|id| id != holder) => {
                Err(Rejection::MakerGone { what: what.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Waits while the only one that will do takes no requests.
    async fn wait_for_holder(&self, wish: &Wish) {
        let Some(holder) = wish.holder.as_ref().filter(|_| wish.insists.is_some()) else { return };
        let closed = || {
            let roster = self.roster.lock();
            roster.as_ref().is_some_and(|roster| {
                !roster.is_open(holder) && roster.members().any(|id| id == holder)
            })
        };
        let waiting = Counted::new(&self.waiting);
        while closed() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(waiting);
    }

    /// One of them, chosen as on a cluster.
    fn chosen(&self, served: &Arc<Served>, wish: &Wish) -> Option<Booking> {
        let id = self.roster.lock().as_mut()?.book(wish)?;
        let number = BookingId(self.next.fetch_add(1, Ordering::SeqCst));
        let (held, roster, booked) =
            (Counted::new(&self.held), Arc::clone(&self.roster), id.clone());
        let address = id.0.parse().unwrap();
        let mut booking = Booking::new(number, Arc::clone(served), address, move |_| {
            drop(held);
            if let Some(roster) = roster.lock().as_mut() {
                roster.finish(&booked);
            }
        });
        booking.endpoint = Some(id);
        Some(booking)
    }

    pub(crate) fn wishes(&self) -> Vec<Wish> {
        self.wishes.lock().clone()
    }

    fn slot(&self, served: Arc<Served>, address: SocketAddr) -> Booking {
        let id = BookingId(self.next.fetch_add(1, Ordering::SeqCst));
        let held = Counted::new(&self.held);
        let mut booking = Booking::new(id, served, address, move |_| drop(held));
        booking.endpoint = Some(endpoint(&address));
        booking
    }
}

/// The desk as the gateway sees it.
pub(crate) struct Counter(pub(crate) Arc<Desk>);

impl Dispatch for Counter {
    fn engines(&self, _model: &ModelId) -> Option<Vec<EndpointId>> {
        let roster = self.0.roster.lock();
        roster.as_ref().map(|roster| roster.members().cloned().collect())
    }

    fn is_up(&self, model: &ModelId) -> bool {
        !self.0.asleep.lock().contains(&*model.name)
    }

    fn book(
        &self,
        served: Arc<Served>,
        wish: Wish,
    ) -> BoxFuture<'static, Result<Booking, Rejection>> {
        let desk = Arc::clone(&self.0);
        async move {
            let waiting = Counted::new(&desk.waiting);
            let mut open = desk.open.subscribe();
            let _ = open.wait_for(|open| *open).await;
            drop(waiting);
            desk.forsakes(&wish)?;
            desk.booked.fetch_add(1, Ordering::SeqCst);
            desk.wishes.lock().push(wish.clone());
            desk.wait_for_holder(&wish).await;
            desk.forsakes(&wish)?;
            if let Some(booking) = desk.chosen(&served, &wish) {
                return Ok(booking);
            }
            let address = desk.engines.lock().get(served.name()).copied();
            match address {
                Some(address) => Ok(desk.slot(served, address)),
                None => Err(Rejection::QueueFull { model: served.effective.id.clone(), limit: 0 }),
            }
        }
        .boxed()
    }

    fn rebook(
        &self,
        failed: Booking,
        wish: Wish,
    ) -> BoxFuture<'static, Result<Booking, Rejection>> {
        let desk = Arc::clone(&self.0);
        async move {
            desk.rebooked.fetch_add(1, Ordering::SeqCst);
            desk.wishes.lock().push(wish);
            let address = desk.spare.lock().unwrap_or(failed.address);
            Ok(desk.slot(Arc::clone(&failed.served), address))
        }
        .boxed()
    }
}
