//! What time it is: the wall clock as it was at the start, moved on by a clock that nobody sets. A
//! jump of the wall clock neither ages nor rejuvenates anything.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use flexinfer_core::moment::Moment;

/// The process's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    wall: Duration,
    started: Instant,
}

impl Clock {
    /// Starts now.
    pub(crate) fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { wall, started: Instant::now() }
    }

    /// Now.
    pub(crate) fn now(&self) -> Moment {
        Moment::after_origin(self.wall + self.started.elapsed())
    }

    /// When `moment` comes, on the clock that timers use; now for one that has passed.
    pub(crate) fn instant(&self, moment: Moment) -> tokio::time::Instant {
        tokio::time::Instant::now() + self.now().until(moment)
    }
}
