//! Places for requests that generate at once. Who finds none waits in order; who leaves gives the
//! place back by drop, whether it was waiting or running.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places of one engine and how many are taken or wanted.
#[derive(Debug)]
pub(crate) struct Slots {
    places: Arc<Semaphore>,
    running: Arc<AtomicUsize>,
    waiting: Arc<AtomicUsize>,
}

/// One taken place; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Slot {
    _running: Counted,
    _place: Option<OwnedSemaphorePermit>,
}

/// Adds one for as long as it lives.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(counter: &Arc<AtomicUsize>) -> Self {
        counter.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(counter))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Slots {
    /// At least one place, whatever is asked for.
    pub(crate) fn new(count: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS))),
            running: Arc::default(),
            waiting: Arc::default(),
        }
    }

    /// Waits in order for a place.
    pub(crate) async fn take(&self) -> Slot {
        let waiting = Counted::new(&self.waiting);
        // The semaphore is never closed; were it, running without a place would be the lesser evil.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let running = Counted::new(&self.running);
        drop(waiting);
        Slot { _running: running, _place: place }
    }

    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn one_who_leaves_while_waiting_gives_the_place_back() {
        let slots = Slots::new(1);
        let mut context = Context::from_waker(Waker::noop());
        let first = match pin!(slots.take()).poll(&mut context) {
            std::task::Poll::Ready(slot) => slot,
            std::task::Poll::Pending => panic!("the only place is free"),
        };
        {
            let mut second = pin!(slots.take());
            assert!(second.as_mut().poll(&mut context).is_pending());
            assert_eq!((slots.running(), slots.waiting()), (1, 1));
        }
        assert_eq!((slots.running(), slots.waiting()), (1, 0));
        drop(first);
        assert_eq!(slots.running(), 0);
        assert!(pin!(slots.take()).poll(&mut context).is_ready());
    }
}
