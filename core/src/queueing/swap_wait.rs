//! How long requests were held before their model's engine could be started, because another model had to leave:
//! what that time was spent on.

use std::time::Duration;

use crate::moment::Moment;

/// The wait of the oldest request, from when it came until the engine was ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwapWait {
    /// Until the other model began to leave.
    pub queued: Duration,
    /// While the other finished what it served.
    pub draining: Duration,
    /// While the other's engine ended.
    pub stopping: Duration,
}

impl SwapWait {
    /// Each part by the name of its phase, in their order.
    pub fn phases(&self) -> [(&'static str, Duration); 3] {
        [("Queued", self.queued), ("Draining", self.draining), ("Stopping", self.stopping)]
    }
}

/// How a model left for another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leave {
    /// When it took nothing new any more.
    pub(super) begun: Moment,
    /// When its engine was told to end.
    pub(super) stopped: Moment,
}

impl Leave {
    /// What a wait `since` this moment was spent on, which is over `now`.
    pub(super) fn wait(self, since: Moment, now: Moment) -> SwapWait {
        let begun = self.begun.max(since);
        let stopped = self.stopped.max(begun);
        SwapWait {
            queued: begun.since(since),
            draining: stopped.since(begun),
            stopping: now.since(stopped),
        }
    }
}
