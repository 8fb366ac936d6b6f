//! How long an HTTP/1 connection may go without a whole request head: between two requests, and
//! while a head trickles in.
//!
//! One timer for a connection, and not one for each of its requests: it goes off when the wait for
//! a head could be over at the earliest, and looks whether there is such a wait. It is a task of its own,
//! so that nothing is done for it when the connection's task runs.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// Since when a connection waits for a head; `None` while it is busy with a request.
#[derive(Debug, Default)]
pub(super) struct HeadWatch {
    since: Mutex<Option<Instant>>,
}

impl HeadWatch {
    /// From now on a head is waited for.
    pub(super) fn wait(&self) {
        *self.since.lock() = Some(Instant::now());
    }

    /// It is complete.
    pub(super) fn arrived(&self) {
        *self.since.lock() = None;
    }

    /// Ends when a head was waited for longer than `limit`.
    pub(super) async fn overdue(&self, limit: Duration) {
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
