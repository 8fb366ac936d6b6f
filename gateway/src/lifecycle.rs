//! Whether the gateway takes requests, and how many it is at. One value per gateway, so that several can
//! run in one process.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// How far the gateway is from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It takes requests and says so.
    Serving,
    /// It still takes requests, and asks load balancers to send them elsewhere.
    Draining,
    /// It finishes what it has begun and takes nothing new.
    Closed,
}

/// The gateway's phase and its requests in flight.
#[derive(Debug)]
pub struct Lifecycle {
    phase: watch::Sender<Phase>,
    in_flight: watch::Sender<usize>,
}

impl Lifecycle {
    /// A gateway that serves.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            phase: watch::Sender::new(Phase::Serving),
            in_flight: watch::Sender::new(0),
        })
    }

    /// The phase now.
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Moves on to `phase`; never back.
    pub fn advance(&self, phase: Phase) {
        self.phase.send_if_modified(|now| {
            let later = *now < phase;
            if later {
                *now = phase;
            }
            later
        });
    }

    /// The requests in flight now.
    pub fn in_flight(&self) -> usize {
        *self.in_flight.borrow()
    }

    /// Counts one request until the guard is dropped.
    pub fn enter(self: &Arc<Self>) -> InFlight {
        self.in_flight.send_modify(|count| *count += 1);
        InFlight(Arc::clone(self))
    }

    /// Waits until nothing is in flight, for at most `limit`. False when the limit came first.
    pub async fn idle(&self, limit: Duration) -> bool {
        let mut count = self.in_flight.subscribe();
        tokio::time::timeout(limit, count.wait_for(|count| *count == 0)).await.is_ok()
    }

    /// Resolves once the gateway takes nothing new.
    pub async fn closed(&self) {
        let mut phase = self.phase.subscribe();
        // The sender lives as long as `self`: an error cannot happen and would mean the same.
        let _ = phase.wait_for(|phase| *phase == Phase::Closed).await;
    }
}

/// One request in flight.
#[derive(Debug)]
pub struct InFlight(Arc<Lifecycle>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.send_modify(|count| *count = count.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_only_move_on() {
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
