//! `flexinfer-node bench`: how fast a model is for those who ask through the gateway.
//!
//! Waits until the model serves, warms it up, then asks at each concurrency in turn. Tokens are those
//! that the engine counts, never guessed from text.

mod arguments;
mod ask;
mod client;
mod engine;
mod events;
mod report;
mod results;
mod sweep;
mod wake;

use anyhow::Context as _;
pub use arguments::Arguments;

use crate::ending::{Ending, Stops};
use ask::Asking;
use report::Report;
use results::Results;

/// Measures, and prints a table or JSON.
pub async fn run(arguments: &Arguments) -> anyhow::Result<Ending> {
    let mut stops = Stops::listen().context("signals cannot be listened for")?;
    tokio::select! {
        measured = measure(arguments) => measured.map(|()| Ending::Done),
        stop = stops.next() => Ok(Ending::Stopped(stop)),
    }
}

async fn measure(arguments: &Arguments) -> anyhow::Result<()> {
    let arguments = &Arguments { backend: engine::named(arguments).await?, ..arguments.clone() };
    let asking = Asking::new(arguments)?;
    let cluster = results::cluster(arguments).await?;
    let woken = wake::wake(&asking, arguments.cold_start_timeout.into()).await?;
    tracing::info!(seconds = woken.as_secs_f64(), model = asking.model(), "the model answers");
    // The gateway may not have been there before.
    let arguments = &Arguments { backend: engine::named(arguments).await?, ..arguments.clone() };
    // Who serves it is known only now that it is awake.
    let results = match cluster {
        Some(cluster) => Some(Results::of(arguments, cluster).await?),
        None => None,
    };
    for _ in 0..arguments.warmup_iterations {
        asking.ask().await.context("warming up")?;
    }
    let mut levels = Vec::new();
    for concurrency in &arguments.concurrency {
        let level = sweep::measure(&asking, arguments, *concurrency).await?;
        let tokens_per_second = level.summary.tokens_per_second;
        tracing::info!(concurrency, tokens_per_second, "measured");
        levels.push(level);
    }
    let mut report = Report::new(arguments, asking.model(), woken, levels);
    let kept = match results {
        Some(results) => keep(&mut report, &results).await.context("the result was not kept"),
        None => Ok(()),
    };
    let text = if arguments.json { report.json()? } else { report.table() };
    println!("{text}");
    kept
}

async fn keep(report: &mut Report, results: &Results<'_>) -> anyhow::Result<()> {
    report.served_by(results.nodes());
    let (measured, method) = report.result()?;
    results.write(&measured, &method).await
}
