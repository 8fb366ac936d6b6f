//! The real clock behind core's moments.

use std::time::Instant;

use flexinfer_core::moment::Moment;

/// Counts moments from its own start.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// A clock whose origin is now.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The moment it is.
    pub fn now(&self) -> Moment {
        Moment::after_origin(self.0.elapsed())
    }

    /// When `moment` is, for a timer.
    pub fn instant(&self, moment: Moment) -> tokio::time::Instant {
        (self.0 + moment.since(Moment::ORIGIN)).into()
    }
}
