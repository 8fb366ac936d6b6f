//! How fast bytes may leave: so many a second, over all who ask.

use std::time::Duration;

use crate::moment::Moment;

/// The pace of everything that one node hands over.
#[derive(Clone, Debug)]
pub struct Pace {
    per_second: u64,
    /// When everything that was let go so far will have left at that pace.
    left_at: Moment,
}

impl Pace {
    /// Lets `per_second` bytes go each second; 0 is no limit.
    pub const fn new(per_second: u64) -> Self {
        Self { per_second, left_at: Moment::ORIGIN }
    }

    /// How long to wait before `bytes` may leave that are ready `now`.
    pub fn wait(&mut self, bytes: u64, now: Moment) -> Duration {
        if self.per_second == 0 {
            return Duration::ZERO;
        }
        #[expect(clippy::cast_precision_loss, reason = "a pace needs no more than 52 bits")]
        let takes = Duration::from_secs_f64(bytes as f64 / self.per_second as f64);
        let begins = self.left_at.max(now);
        self.left_at = begins + takes;
        now.until(begins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Moment {
        Moment::after_origin(Duration::from_millis(milliseconds))
    }

    #[test]
    fn what_leaves_keeps_to_the_pace_and_a_pause_is_not_saved_up() {
        let mut pace = Pace::new(1000);
        assert_eq!(pace.wait(500, at(0)), Duration::ZERO);
        assert_eq!(pace.wait(500, at(0)), Duration::from_millis(500));
        assert_eq!(pace.wait(500, at(600)), Duration::from_millis(400));
        assert_eq!(pace.wait(500, at(60_000)), Duration::ZERO);
        assert_eq!(pace.wait(500, at(60_000)), Duration::from_millis(500));
    }

    #[test]
    fn without_a_limit_nothing_waits() {
        let mut pace = Pace::new(0);
        assert_eq!(pace.wait(u64::MAX, at(0)), Duration::ZERO);
        assert_eq!(pace.wait(u64::MAX, at(0)), Duration::ZERO);
    }
}
