//! How fast something may be used, and how much of that is used up. A bucket is one moment: when it
//! will be full again. Spending moves it on, giving back moves it back, and time does the rest.

use std::time::Duration;

use crate::moment::Moment;

/// So many units per period, and at most `burst` at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Units per period. Zero lets nothing through, ever.
    pub units: u32,
    /// In which they come back.
    pub period: Duration,
    /// The most that can have come together; at least one.
    pub burst: u32,
}

impl Rate {
    /// `units` each second.
    pub const fn per_second(units: u32, burst: u32) -> Self {
        Self { units, period: Duration::from_secs(1), burst: if burst == 0 { 1 } else { burst } }
    }

    /// `units` each minute.
    pub const fn per_minute(units: u32, burst: u32) -> Self {
        Self { period: Duration::from_secs(60), ..Self::per_second(units, burst) }
    }

    /// The time in which `units` come back; for ever, where nothing does.
    pub fn cost(self, units: u64) -> Duration {
        let nanoseconds = self.period.as_nanos().saturating_mul(u128::from(units));
        let cost = nanoseconds.checked_div(u128::from(self.units)).unwrap_or(u128::MAX);
        Duration::from_nanos(u64::try_from(cost).unwrap_or(u64::MAX))
    }

    /// The time in which an empty bucket becomes full.
    fn depth(self) -> Duration {
        self.cost(u64::from(self.burst))
    }

    /// How many of `units` are reserved: what can never be there at once, as all there is. Settling sees to the rest.
    pub(super) fn reserved(self, units: u64) -> u64 {
        units.min(u64::from(self.burst))
    }

    /// How many units come back within `time`, which was rounded down to a nanosecond.
    fn units_in(self, time: Duration) -> u64 {
        let units = (time.as_nanos() + 1).saturating_mul(u128::from(self.units));
        u64::try_from(units.checked_div(self.period.as_nanos()).unwrap_or(0)).unwrap_or(u64::MAX)
    }
}

/// Something that was spent, and when time will have brought it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spent {
    pub(super) cost: Duration,
    back_at: Moment,
}

/// What is used up of a rate. A new one is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bucket {
    full_at: Moment,
}

impl Bucket {
    /// How long until `units` are there; zero when they are. More than ever fit count as a full
    /// bucket, since waiting longer would not help.
    pub(super) fn wait(self, rate: Rate, units: u64, now: Moment) -> Duration {
        let needed = rate.cost(rate.reserved(units));
        let missing = now.until(self.full_at).saturating_add(needed);
        missing.saturating_sub(rate.depth())
    }

    /// Uses up what [`Rate::cost`] says; the bucket may come to owe.
    pub(super) fn spend(&mut self, cost: Duration, now: Moment) -> Spent {
        self.full_at = self.full_at.max(now) + cost;
        Spent { cost, back_at: self.full_at }
    }

    /// Takes back `cost` of what was spent, but for what time has brought back already: twice would
    /// let more through than there is.
    pub(super) fn give_back(&mut self, spent: Spent, cost: Duration, now: Moment) {
        self.full_at = self.full_at - now.until(spent.back_at).min(cost);
    }

    /// Whole units that are there.
    pub(super) fn left(self, rate: Rate, now: Moment) -> u64 {
        rate.units_in(rate.depth().saturating_sub(self.full_in(now)))
    }

    /// How long until it is full.
    pub(super) fn full_in(self, now: Moment) -> Duration {
        now.until(self.full_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Moment {
        Moment::after_origin(Duration::from_millis(milliseconds))
    }

    #[test]
    fn a_burst_passes_and_then_one_per_interval() {
        let rate = Rate::per_second(3, 2);
        let mut bucket = Bucket::default();
        let mut passed = Vec::new();
        for milliseconds in 0..2000 {
            if bucket.wait(rate, 1, at(milliseconds)).is_zero() {
                bucket.spend(rate.cost(1), at(milliseconds));
                passed.push(milliseconds);
            }
        }
        assert_eq!(passed, [0, 1, 334, 667, 1000, 1334, 1667]);
    }

    #[test]
    fn the_wait_that_is_told_is_enough() {
        let rate = Rate::per_minute(7, 3);
        let mut bucket = Bucket::default();
        bucket.spend(rate.cost(3), at(0));
        let wait = bucket.wait(rate, 2, at(0));
        assert!(wait > Duration::from_secs(17));
        assert!(bucket.wait(rate, 2, at(0) + wait).is_zero());
        assert_eq!(bucket.left(rate, at(0)), 0);
        assert_eq!(bucket.left(rate, at(60_000)), 3);
    }

    #[test]
    fn more_than_ever_fits_waits_for_a_full_bucket_and_owes_the_rest() {
        let rate = Rate::per_minute(100, 100);
        let mut bucket = Bucket::default();
        assert!(bucket.wait(rate, 250, at(0)).is_zero());
        bucket.spend(rate.cost(250), at(0));
        assert_eq!(bucket.wait(rate, 1, at(0)), rate.cost(151));
    }

    #[test]
    fn what_is_given_back_is_there_again_and_never_more_than_fits() {
        let rate = Rate::per_second(1, 2);
        let mut bucket = Bucket::default();
        let first = bucket.spend(rate.cost(1), at(0));
        let second = bucket.spend(rate.cost(1), at(0));
        assert_eq!(bucket.left(rate, at(0)), 0);
        bucket.give_back(second, second.cost, at(0));
        assert_eq!(bucket.left(rate, at(0)), 1);
        bucket.spend(rate.cost(1), at(1000));
        bucket.give_back(first, first.cost, at(1000));
        assert_eq!(bucket.left(rate, at(1000)), 1, "time had brought the first back");
    }

    #[test]
    fn a_rate_of_nothing_has_nothing() {
        let rate = Rate::per_second(0, 1);
        assert_eq!(rate.cost(1), Duration::from_nanos(u64::MAX));
        assert_eq!(Bucket::default().left(rate, at(0)), 0);
    }
}
