//! Waits until a model serves: one that sleeps is woken by being asked.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use super::ask::{AskError, Asking};

/// Between two tries, where the gateway does not say when to come back.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest pause that is believed.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Asks until there is an answer, for `limit` at most. Gives how long it took: the load time of a
/// model that slept.
pub(super) async fn wake(asking: &Asking, limit: Duration) -> anyhow::Result<Duration> {
    let begun = Instant::now();
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
        tracing::info!(%error, "not yet");
        tokio::time::sleep(pause).await;
    }
}

/// How long to wait before asking again; `None` where that cannot help.
fn worth_waiting(error: &AskError) -> Option<Duration> {
    match error {
        AskError::Refused { status: 429 | 502 | 503 | 504, retry_after, .. } => {
            Some(retry_after.unwrap_or(PAUSE).min(LONGEST_PAUSE))
        }
        AskError::Unreachable { .. } | AskError::BrokenOff(_) => Some(PAUSE),
        AskError::Refused { .. } | AskError::NoUsage | AskError::Strange(_) => None,
    }
}
