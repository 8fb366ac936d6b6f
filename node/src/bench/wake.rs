//! Waits until a model serves: one that sleeps is woken by being asked.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::ask::{AskError, Asking};

/// Between two tries, where the gateway does not say when to come back.
const PAUSE: Duration = Duration::from_secs(1);

/// The pauses that are believed: no gateway is to be asked without any.
const PAUSES: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(30);

/// How often the same reason is told again.
const BETWEEN_LINES: Duration = Duration::from_secs(15);

/// Asks until there is an answer, for `limit` at most. Gives how long it took: the load time of a
/// model that slept.
pub(super) async fn wake(asking: &Asking, limit: Duration) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let mut told = Told::default();
    loop {
        let left = limit.saturating_sub(begun.elapsed());
        let Ok(asked) = tokio::time::timeout(left, asking.ask_for(1)).await else {
            bail!("{} has not answered within {limit:?}; see --cold-start-timeout", asking.model());
        };
        let Err(error) = asked else { return Ok(begun.elapsed()) };
        let Some(pause) = worth_waiting(&error) else {
            return Err(error).with_context(|| format!("{} cannot be measured", asking.model()));
        };
        if begun.elapsed() + pause >= limit {
            return Err(error).with_context(|| {
                let model = asking.model();
                format!("{model} was not ready within {limit:?}; see --cold-start-timeout")
            });
        }
        let reason = error.to_string();
        if told.is_due(&reason, Instant::now()) {
            tracing::info!(reason, "the model does not serve yet");
        }
        tokio::time::sleep(pause).await;
    }
}

/// How long to wait before asking again; `None` where that cannot help.
fn worth_waiting(error: &AskError) -> Option<Duration> {
    match error {
        AskError::Refused { status: 429 | 502 | 503 | 504, retry_after, .. } => {
            Some(retry_after.unwrap_or(PAUSE).clamp(*PAUSES.start(), *PAUSES.end()))
        }
        AskError::Unreachable { .. } | AskError::BrokenOff(_) => Some(PAUSE),
        AskError::Refused { .. } | AskError::NoUsage | AskError::Strange(_) => None,
    }
}

/// What was said last of why the model is not there yet.
#[derive(Default)]
struct Told {
    last: Option<(String, Instant)>,
}

impl Told {
    /// Whether `reason` is to be told: another one than before, or the same after a while.
    fn is_due(&mut self, reason: &str, now: Instant) -> bool {
        let recent = |at: Instant| now.saturating_duration_since(at) < BETWEEN_LINES;
        if self.last.as_ref().is_some_and(|(told, at)| told == reason && recent(*at)) {
            return false;
        }
        self.last = Some((reason.to_owned(), now));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_reason_is_told_once_in_a_while_and_another_at_once() {
        let mut told = Told::default();
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let due = [(0, "loading"), (1, "loading"), (2, "refused"), (3, "refused"), (17, "refused")]
            .map(|(seconds, reason)| told.is_due(reason, at(seconds)));
        assert_eq!(due, [true, false, true, false, true]);
    }
}
