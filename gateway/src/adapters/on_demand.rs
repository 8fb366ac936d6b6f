//! Adapters that are loaded at their first request (`preload: false`): once for each engine, however many ask
//! for it, while all of them are held. They stay until their engine ends, or is seen to have been away.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flexinfer_core::backends::{Backend, Call};
use flexinfer_core::fleet::{Adapter, Served};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use super::turns::{Place, Turns};
use super::{Fault, made, place};
use crate::queues::Booking;
use crate::secrets::Secrets;
use crate::way::Way;

/// How long it is believed that an engine has what it once loaded. Then it is asked again, which costs one call:
/// another engine may have come to the address.
const BELIEVED: Duration = Duration::from_mins(10);

/// Tells loads apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoadId(u64);

/// A load that is under way, or done.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) id: LoadId,
    /// What came of it, or will.
    pub(crate) outcome: Shared<BoxFuture<'static, Result<(), Arc<Fault>>>>,
    since: Instant,
    /// Where the engine takes the adapter from.
    source: String,
}

/// The loads under way, and those that are done.
type Loads = Arc<Mutex<HashMap<Place, Load>>>;

/// What engines are asked about adapters once they are up, and which of them have what.
pub struct OnDemand {
    /// Where paths that are not absolute count from.
    folder: PathBuf,
    secrets: Arc<Secrets>,
    turns: Turns,
    next: AtomicU64,
    loads: Loads,
}

impl OnDemand {
    /// No adapter is loaded yet. The paths of those that come from a path count from `folder`; engines are known
    /// and know us by `secrets`.
    pub fn new(folder: impl Into<PathBuf>, secrets: Arc<Secrets>) -> Arc<Self> {
        let (turns, next) = (Turns::default(), AtomicU64::new(0));
        Arc::new(Self { folder: folder.into(), secrets, turns, next, loads: Loads::default() })
    }

    /// The load that gives the booked engine `adapter`, if it has it not from its start. One under way is joined; it
    /// goes on though nobody waits for it any more. One that failed is tried anew by the next request.
    pub(crate) fn load(&self, booking: &Booking, adapter: &Adapter) -> Option<Load> {
        let served = &booking.served;
        let source = place(adapter.on_demand.as_ref()?, &self.folder);
        let backend = Backend::named(&served.backend)?;
        let load = backend.load_adapter(&adapter.name, &source)?;
        let place = (booking.address, Arc::clone(&adapter.name));
        let mut loads = self.loads.lock();
        let before = loads.get(&place);
        let believed = |load: &&Load| load.since.elapsed() < BELIEVED && load.source == source;
        if let Some(load) = before.filter(believed) {
            return Some(load.clone());
        }
        // An engine that has something by the name takes nothing else by it.
        let other = before.filter(|load| load.source != source);
        let unload = other.and_then(|_| backend.unload_adapter(&adapter.name));
        let load = self.begin(served, backend, &place, source, unload, load);
        loads.retain(|_, load| load.since.elapsed() < BELIEVED);
        loads.insert(place, load.clone());
        Some(load)
    }

    /// Must be called while the loads are locked: what it begins may end at once.
    fn begin(
        &self,
        served: &Arc<Served>,
        backend: Backend,
        place: &Place,
        source: String,
        unload: Option<Call>,
        load: Call,
    ) -> Load {
        let id = LoadId(self.next.fetch_add(1, Ordering::Relaxed));
        let (served, secrets) = (Arc::clone(served), Arc::clone(&self.secrets));
        let (loads, own) = (Arc::clone(&self.loads), place.clone());
        let work = async move {
            let way = Way::to(own.0, &served.effective, &secrets);
            if let Some(unload) = unload {
                // If it has it no more, so much the better; if it keeps it, it says so next.
                let _ = made(backend, &way, &unload).await;
            }
            let made = made(backend, &way, &load).await;
            let (address, adapter) = &own;
            match &made {
                Ok(()) => info!(%adapter, %address, "an adapter is loaded"),
                Err(why) => {
                    warn!(%adapter, %address, "an adapter: {why}");
                    forget(&loads, &own, id);
                }
            }
            made.map_err(Arc::new)
        };
        let task = self.turns.take(place.clone(), work);
        let broken_off = || Err(Arc::new(Fault::Refused("the load was broken off".into())));
        let outcome = async move { task.await.unwrap_or_else(|_| broken_off()) };
        Load { id, outcome: outcome.boxed().shared(), since: Instant::now(), source }
    }

    /// Asks the engine of `served` at `address` for something about `adapter`, after all that was asked of it
    /// about it before. What it refuses is told; its other names are served.
    pub(crate) fn tell(
        &self,
        served: &Arc<Served>,
        address: SocketAddr,
        adapter: &Arc<str>,
        call: Call,
    ) -> Option<JoinHandle<()>> {
        let backend = Backend::named(&served.backend)?;
        let place = (address, Arc::clone(adapter));
        self.loads.lock().remove(&place);
        let (served, secrets) = (Arc::clone(served), Arc::clone(&self.secrets));
        let adapter = Arc::clone(adapter);
        Some(self.turns.take(place, async move {
            let way = Way::to(address, &served.effective, &secrets);
            let (model, path) = (&served.effective.id, &call.path);
            match made(backend, &way, &call).await {
                Ok(()) => info!(%model, %address, %adapter, path, "an adapter is as it shall be"),
                Err(why) => warn!(%model, %address, %adapter, path, "an adapter: {why}"),
            }
        }))
    }

    /// The engine does not know the adapter that it got by this load.
    pub(crate) fn forget(&self, load: LoadId) {
        self.loads.lock().retain(|_, known| known.id != load);
    }

    /// The engine at `address` is or was away: what comes back there has nothing yet.
    pub(crate) fn forget_engine(&self, address: SocketAddr) {
        self.loads.lock().retain(|(at, _), _| *at != address);
    }
}

/// Forgets the load, unless another one has taken its place.
fn forget(loads: &Loads, place: &Place, id: LoadId) {
    let mut loads = loads.lock();
    if loads.get(place).is_some_and(|load| load.id == id) {
        loads.remove(place);
    }
}
