//! Whether the gateway takes requests, and how many it is at. One value per gateway, so that several can
//! run in one process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// How far the gateway is from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It does not know yet what it serves.
    Starting,
    /// It takes requests and says so.
    Serving,
    /// It still takes requests, and asks load balancers to send them elsewhere.
    Draining,
    /// It finishes what it has begun and takes nothing new.
    Closed,
}

impl Phase {
    const ALL: [Self; 4] = [Self::Starting, Self::Serving, Self::Draining, Self::Closed];

    /// What `/readyz` answers, wherever it is asked: a status and a word.
    pub fn readiness(self) -> (u16, &'static str) {
        match self {
            Self::Starting => (503, "starting"),
            Self::Serving => (200, "ok"),
            Self::Draining | Self::Closed => (503, "draining"),
        }
    }
}

/// The gateway's phase and its requests in flight.
#[derive(Debug)]
pub struct Lifecycle {
    /// Its place in [`Phase::ALL`]: every request looks at it, twice.
    phase: AtomicU8,
    in_flight: AtomicUsize,
    none_left: Notify,
}

impl Lifecycle {
    /// A gateway that serves.
    pub fn new() -> Arc<Self> {
        Self::at(Phase::Serving)
    }

    /// A gateway that has to learn first what it serves.
    pub fn starting() -> Arc<Self> {
        Self::at(Phase::Starting)
    }

    fn at(phase: Phase) -> Arc<Self> {
        Arc::new(Self {
            phase: AtomicU8::new(phase as u8),
            in_flight: AtomicUsize::new(0),
            none_left: Notify::new(),
        })
    }

    /// The phase now.
    pub fn phase(&self) -> Phase {
        let place = usize::from(self.phase.load(Ordering::SeqCst));
        Phase::ALL.get(place).copied().unwrap_or(Phase::Closed)
    }

    /// Moves on to `phase`; never back.
    pub fn advance(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::SeqCst);
    }

    /// The requests in flight now.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::SeqCst)
    }

    /// Counts one request until the guard is dropped.
    pub fn enter(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        InFlight(Arc::clone(self))
    }

    /// Waits until nothing is in flight, for at most `limit`. False when the limit came first.
    pub async fn idle(&self, limit: Duration) -> bool {
        let idle = async {
            loop {
                // Registered before the count is read, so that the last one cannot slip by in between.
                let none_left = self.none_left.notified();
                if self.in_flight() == 0 {
                    return;
                }
                none_left.await;
            }
        };
        tokio::time::timeout(limit, idle).await.is_ok()
    }
}

/// One request in flight.
#[derive(Debug)]
pub struct InFlight(Arc<Lifecycle>);

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.0.in_flight.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.none_left.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_gateway_that_takes_requests_gladly_is_ready() {
        assert_eq!(Phase::ALL.map(|phase| phase.readiness().0), [503, 200, 503, 503]);
    }

    #[test]
    fn phases_only_move_on() {
        for phase in Phase::ALL {
            assert_eq!(Lifecycle::at(phase).phase(), phase);
        }
        let lifecycle = Lifecycle::new();
        lifecycle.advance(Phase::Closed);
        lifecycle.advance(Phase::Draining);
        assert_eq!(lifecycle.phase(), Phase::Closed);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_waits_for_the_last_request_and_not_longer_than_it_may() {
        let lifecycle = Lifecycle::new();
        let request = lifecycle.enter();
        assert!(!lifecycle.idle(Duration::from_secs(600)).await);
        let waiting = Arc::clone(&lifecycle);
        let idle = tokio::spawn(async move { waiting.idle(Duration::from_secs(600)).await });
        drop(request);
        assert!(idle.await.expect("the waiter does not panic"));
    }
}
