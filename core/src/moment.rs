//! Time as core sees it: a distance from an origin that the caller chose.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A point in time, as the distance from the process's own origin. Handed in by the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(Duration);

impl Moment {
    /// The origin itself.
    pub const ORIGIN: Self = Self(Duration::ZERO);

    /// The moment `distance` after the origin.
    pub const fn after_origin(distance: Duration) -> Self {
        Self(distance)
    }

    /// How long ago `earlier` was; zero when it lies in the future.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// How long it is until `later`; zero when it has passed.
    pub fn until(self, later: Self) -> Duration {
        later.0.saturating_sub(self.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, distance: Duration) -> Self {
        Self(self.0.saturating_add(distance))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, distance: Duration) -> Self {
        Self(self.0.saturating_sub(distance))
    }
}
