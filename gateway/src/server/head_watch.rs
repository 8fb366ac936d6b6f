//! How long an HTTP/1 connection may go without a whole request head: between two requests, and
//! while a head trickles in.
//!
//! One timer for a connection, and not one for each of its requests: it goes off when the wait for
//! a head could be over at the earliest, and looks whether there is such a wait.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

tokio::task_local! {
    /// The watch of the connection that the running task serves.
    static WATCH: Arc<HeadWatch>;
}

/// Since when a connection waits for a head; `None` while it is busy with a request.
#[derive(Debug, Default)]
pub(super) struct HeadWatch {
    since: Mutex<Option<Instant>>,
}

/// The head of the running task's connection is complete.
pub(crate) fn head_arrived() {
    // HTTP/2 connections and tests have none.
    let _ = WATCH.try_with(|watch| *watch.since.lock() = None);
}

impl HeadWatch {
    /// Runs `conversation`, which tells this watch when it waits, until it ends or waits for a head
    /// longer than `limit`. False for the latter.
    pub(super) async fn over(
        self: Arc<Self>,
        limit: Duration,
        conversation: impl Future<Output = ()>,
    ) -> bool {
        let overdue = Arc::clone(&self).overdue(limit);
        WATCH
            .scope(self, async {
                tokio::select! {
                    () = conversation => true,
                    () = overdue => false,
                }
            })
            .await
    }

    /// From now on a head is waited for.
    pub(super) fn await_head(&self) {
        *self.since.lock() = Some(Instant::now());
    }

    async fn overdue(self: Arc<Self>, limit: Duration) {
        loop {
            let since = *self.since.lock();
            let now = Instant::now();
            let due = since.unwrap_or(now) + limit;
            if due <= now {
                return;
            }
            sleep_until(due).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_waits_too_long_for_a_head_is_ended_at_the_limit() {
        let watch = Arc::new(HeadWatch::default());
        let waiting = Arc::clone(&watch);
        let began = Instant::now();
        let conversation = async move {
            sleep(Duration::from_secs(4)).await;
            waiting.await_head();
            std::future::pending::<()>().await;
        };
        assert!(!watch.over(LIMIT, conversation).await);
        assert_eq!(began.elapsed().as_secs(), 14, "counted from when the wait began");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_may_take_as_long_as_it_takes() {
        let watch = Arc::new(HeadWatch::default());
        let waiting = Arc::clone(&watch);
        let conversation = async move {
            for _ in 0..3 {
                waiting.await_head();
                sleep(Duration::from_secs(9)).await;
                head_arrived();
                sleep(Duration::from_secs(100)).await;
            }
        };
        assert!(watch.over(LIMIT, conversation).await);
    }
}
