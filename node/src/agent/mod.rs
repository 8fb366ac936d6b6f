//! `flexinfer-node agent`: looks at a node's hardware again and again, and writes what it found on the node.
//!
//! `probing` asks tools and drivers, `cluster` is the node as the API server has it, `looking` goes from the
//! one to the other, `freed` hears when memory becomes free, `noticing` watches for the machine being taken away, `metrics` shows it all. What
//! anything means is decided in `flexinfer_core::hardware`.

mod arguments;
mod cluster;
mod engines;
mod freed;
mod looking;
mod metrics;
mod noticing;
mod probing;

use std::sync::Arc;

use anyhow::{Context as _, bail};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

pub use arguments::Arguments;
use cluster::{DryRun, Kubernetes, NodeStore};
use looking::Looker;
use metrics::Metrics;
use noticing::Watch;
use probing::Prober;

use crate::ending::{Ending, Stops};
use crate::flash::place;
use crate::weights;

/// Looks at the hardware until it is told to stop. Ends with an error when the devices stay out of reach, so
/// that its container is made anew.
pub async fn run(arguments: &Arguments) -> anyhow::Result<Ending> {
    let mut stops = Stops::listen().context("signals cannot be listened for")?;
    // Whoever set one first is right; only the absence of any would be an error, at the first connection.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let node = arguments.node_name()?;
    let store = store(arguments, &node).await?;
    let metrics = Arc::new(
        Metrics::new(&node, arguments.memory()).context("the metrics cannot be registered")?,
    );
    let prober = Prober::new(&arguments.probing);
    let mut looker = Looker::new(arguments, Arc::clone(&store), prober, Arc::clone(&metrics))?;
    if arguments.once {
        looker.look().await?;
        return Ok(Ending::Done);
    }
    let page = metrics::serve(metrics, arguments.metrics_port).await?;
    let weights = hand_on(arguments, &node).await?;
    let (mut freed, ends) = freed::watch(Arc::clone(&store));
    let watch = tokio::spawn(Watch::new(&arguments.noticing, store)?.run());
    let mut ticks = interval(arguments.interval.into());
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let ending = loop {
        tokio::select! {
            stop = stops.next() => break Ok(Ending::Stopped(stop)),
            _ = ticks.tick() => {}
            Some(()) = freed.recv() => {}
        }
        // A look ends by itself, for each of its steps has a limit; a stop need not wait for it.
        tokio::select! {
            stop = stops.next() => break Ok(Ending::Stopped(stop)),
            looked = looker.look() => match looked {
                Ok(false) => {}
                Ok(true) => break give_up(),
                Err(error) => tracing::warn!(error = %format!("{error:#}"), "the node could not be brought up to date; trying again"),
            }
        }
    };
    watch.abort();
    ends.abort();
    page.abort();
    weights.iter().for_each(JoinHandle::abort);
    ending
}

/// Hands weights on and removes those that nobody needs, where there is a folder with them.
async fn hand_on(arguments: &Arguments, node: &str) -> anyhow::Result<Vec<JoinHandle<()>>> {
    let weights = &arguments.weights;
    let Some(folder) = weights.dir.clone() else { return Ok(Vec::new()) };
    place::check(&folder).context("--weights-dir (FLEXINFER_WEIGHTS_DIR)")?;
    let mut tasks = vec![weights::serve(folder.clone(), weights).await?];
    if weights.cleanup && !arguments.dry_run {
        let cluster = Kubernetes::connect(node).await.context("nobody knows what is needed")?;
        tasks.push(tokio::spawn(weights::remove_unneeded(folder, cluster)));
    }
    Ok(tasks)
}

fn give_up() -> anyhow::Result<Ending> {
    bail!(
        "the GPUs stayed out of reach; ending, so that the container is started with its devices anew"
    )
}

/// Where the node is read from and written to. A dry run works without a cluster too.
async fn store(arguments: &Arguments, node: &str) -> anyhow::Result<Arc<dyn NodeStore>> {
    match (Kubernetes::connect(node).await, arguments.dry_run) {
        (Ok(cluster), false) => Ok(Arc::new(cluster)),
        (Ok(cluster), true) => Ok(Arc::new(DryRun::of(Some(cluster)))),
        (Err(error), true) => {
            tracing::info!(error = %error, "no cluster is known; as if the node carried nothing");
            Ok(Arc::new(DryRun::of(None)))
        }
        (Err(error), false) => {
            Err(error).context("run it in a cluster, set KUBECONFIG, or use --dry-run")
        }
    }
}
