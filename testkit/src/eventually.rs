//! Waiting for a state with a bound, the only way a test may wait.

use std::future::Future;
use std::time::{Duration, Instant};

/// How often a state is looked at.
const PAUSE: Duration = Duration::from_millis(2);

/// Looks at the state until it is true; false when it was not within `bound`. The last look comes after
/// the bound, so that a machine that stood still does not fail the test.
#[must_use]
pub async fn eventually(bound: Duration, mut state: impl FnMut() -> bool) -> bool {
    eventually_async(bound, || std::future::ready(state())).await
}

/// The same for a state that takes an await to look at.
#[must_use]
pub async fn eventually_async<S, F>(bound: Duration, mut state: S) -> bool
where
    S: FnMut() -> F,
    F: Future<Output = bool>,
{
    let begun = Instant::now();
    loop {
        let last = begun.elapsed() >= bound;
        if state().await {
            return true;
        }
        if last {
            return false;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_state_that_comes_is_seen() {
        let mut looks = 0;
        assert!(
            eventually(Duration::from_secs(10), || {
                looks += 1;
                looks == 3
            })
            .await
        );
    }

    #[tokio::test]
    async fn a_state_that_never_comes_ends_the_wait() {
        assert!(!eventually(Duration::ZERO, || false).await);
    }
}
