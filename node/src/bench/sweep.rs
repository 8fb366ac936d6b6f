//! One level of a sweep: so many ask at once, again and again, until enough was measured.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use flexinfer_core::measuring::{Sample, Summary, summarize};
use futures::stream::{FuturesUnordered, StreamExt as _};
use serde::Serialize;

use super::arguments::Arguments;
use super::ask::{AskError, Asking};

/// What was measured with so many at once.
#[derive(Debug, Serialize)]
pub(super) struct Level {
    pub(super) concurrency: u32,
    /// Requests without a usable answer.
    pub(super) failed: u64,
    #[serde(flatten)]
    pub(super) summary: Summary,
}

/// What those who ask have got.
#[derive(Default)]
struct Got {
    samples: Vec<Sample>,
    failed: u64,
    last_error: Option<AskError>,
}

/// Measures with `concurrency` requests at once; an error if none had an answer.
pub(super) async fn measure(
    asking: &Asking,
    arguments: &Arguments,
    concurrency: u32,
) -> anyhow::Result<Level> {
    let begun = Instant::now();
    let least = Duration::from(arguments.min_duration);
    let asking = (0..concurrency).map(|_| ask_on(asking, arguments.iterations, begun, least));
    let mut asking = asking.collect::<FuturesUnordered<_>>();
    let mut all = Got::default();
    while let Some(got) = asking.next().await {
        all.samples.extend(got.samples);
        all.failed += got.failed;
        all.last_error = got.last_error.or(all.last_error);
    }
    let duration = begun.elapsed();
    if let Some(error) = all.last_error {
        if all.samples.is_empty() {
            return Err(error)
                .with_context(|| format!("none of {} requests was answered", all.failed));
        }
        tracing::warn!(failed = all.failed, %error, "some requests were not answered");
    }
    let summary = summarize(&all.samples, duration);
    Ok(Level { concurrency, failed: all.failed, summary })
}

/// Asks one request after another, until there are enough and it took long enough.
async fn ask_on(asking: &Asking, iterations: u32, begun: Instant, least: Duration) -> Got {
    let mut got = Got::default();
    let mut asked = 0;
    while asked < iterations || begun.elapsed() < least {
        asked += 1;
        match asking.ask().await {
            Ok(sample) => got.samples.push(sample),
            Err(error) => {
                got.failed += 1;
                got.last_error = Some(error);
            }
        }
        if asked >= iterations && got.samples.is_empty() {
            // Refusals come fast: to go on until the time is over would only flood the gateway.
            break;
        }
    }
    got
}
