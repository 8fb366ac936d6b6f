//! How often a thing that failed is tried again, and how long is waited between.

use std::time::Duration;

/// Bounds on trying again. Progress starts the count anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Failures in a row after which it is given up; default 6.
    pub attempts: u32,
    /// The wait after the first failure, doubled after each further one; default 500 ms.
    pub first_wait: Duration,
    /// The longest wait that doubling leads to; default 30 s.
    pub longest_wait: Duration,
    /// The longest `Retry-After` that is obeyed to the letter; a longer one is cut; default 5 min.
    pub longest_retry_after: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            attempts: 6,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(30),
            longest_retry_after: Duration::from_mins(5),
        }
    }
}

impl Patience {
    /// How long to wait after `failures` in a row (at least one), or `None` to give up.
    pub fn wait(&self, failures: u32, retry_after: Option<Duration>) -> Option<Duration> {
        if failures >= self.attempts {
            return None;
        }
        if let Some(asked) = retry_after {
            return Some(asked.min(self.longest_retry_after));
        }
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        Some(self.first_wait.saturating_mul(doubled).min(self.longest_wait))
    }
}
