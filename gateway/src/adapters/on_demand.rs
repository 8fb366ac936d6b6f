//! Adapters that are loaded at their first request (`preload: false`): once for each engine, however many ask
//! for it, while all of them are held. They stay until their engine ends.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flexinfer_core::backends::{Backend, Call};
use flexinfer_core::fleet::Adapter;
use flexinfer_core::rejection::Rejection;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use tracing::{info, warn};

use super::{made, place};
use crate::queues::Booking;

/// How long it is believed that an engine has what it once loaded. Then it is asked again, which costs one call:
/// another engine may have come to the address.
const BELIEVED: Duration = Duration::from_mins(10);

/// What came of a load; what was wrong is for people.
type Loaded = Shared<BoxFuture<'static, Result<(), Arc<str>>>>;

/// One adapter of one engine, as it is asked to load it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    address: SocketAddr,
    name: Arc<str>,
    place: String,
}

struct Load {
    since: Instant,
    loaded: Loaded,
}

/// The loads under way, and those that are done.
pub struct OnDemand {
    /// Where paths that are not absolute count from.
    folder: PathBuf,
    loads: Arc<Mutex<HashMap<Key, Load>>>,
}

impl OnDemand {
    /// No adapter is loaded yet. The paths of those that come from a path count from `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Arc<Self> {
        Arc::new(Self { folder: folder.into(), loads: Arc::default() })
    }

    /// Waits until the booked engine has `adapter`, if it has it not from its start. A load under way is joined; it
    /// goes on though nobody waits for it any more. One that failed is tried anew by the next request.
    pub(crate) async fn ensure(
        &self,
        booking: &Booking,
        adapter: &Adapter,
    ) -> Result<(), Rejection> {
        let Some((key, backend, call)) = self.asked(booking, adapter) else { return Ok(()) };
        let loaded = self.load(key, backend, call);
        loaded.await.map_err(|problem| Rejection::AdapterNotLoaded {
            model: booking.served.effective.id.clone(),
            adapter: adapter.name.to_string(),
            problem: problem.to_string(),
        })
    }

    /// The booked engine does not know the adapter after all.
    pub(crate) fn forget(&self, booking: &Booking, adapter: &Adapter) {
        if let Some((key, ..)) = self.asked(booking, adapter) {
            self.loads.lock().remove(&key);
        }
    }

    fn asked(&self, booking: &Booking, adapter: &Adapter) -> Option<(Key, Backend, Call)> {
        let source = adapter.on_demand.as_ref()?;
        let backend = Backend::named(&booking.served.backend)?;
        let place = place(source, &self.folder);
        let call = backend.load_adapter(&adapter.name, &place)?;
        let key = Key { address: booking.address, name: Arc::clone(&adapter.name), place };
        Some((key, backend, call))
    }

    fn load(&self, key: Key, backend: Backend, call: Call) -> Loaded {
        let mut loads = self.loads.lock();
        if let Some(load) = loads.get(&key).filter(|load| load.since.elapsed() < BELIEVED) {
            return load.loaded.clone();
        }
        loads.retain(|_, load| load.since.elapsed() < BELIEVED);
        let (known, own) = (Arc::clone(&self.loads), key.clone());
        let task = tokio::spawn(async move {
            let made = made(backend, own.address, &call).await;
            match &made {
                Ok(()) => {
                    info!(adapter = %own.name, address = %own.address, "an adapter is loaded");
                }
                Err(why) => {
                    warn!(adapter = %own.name, address = %own.address, "an adapter: {why}");
                    known.lock().remove(&own);
                }
            }
            made.map_err(Arc::from)
        });
        let loaded =
            async move { task.await.unwrap_or_else(|_| Err("the load was broken off".into())) };
        let loaded = loaded.boxed().shared();
        loads.insert(key, Load { since: Instant::now(), loaded: loaded.clone() });
        loaded
    }
}
