//! The controller itself: pages and leadership.

mod arguments;

use anyhow::Context as _;
use kube::Client;
use prometheus::Registry;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

pub use arguments::{Arguments, Binding};

use crate::leadership::{Candidate, Holder};
use crate::pages::{self, Health};

/// Looks after Models until it is told to stop or loses the lead.
pub async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if arguments.print_settings {
        println!("{}", serde_json::to_string_pretty(&arguments.shown())?);
        return Ok(());
    }
    let client = Client::try_default().await.context(
        "there is no cluster to look after; run it in a pod with a service account, or set KUBECONFIG",
    )?;
    let registry = Registry::new();
    let (health, mut pages) = (Health::default(), JoinSet::new());
    serve(arguments, &mut pages, &health, registry).await?;

    tokio::select! {
        ended = act(arguments, client, &health) => ended,
        () = told_to_stop() => Ok(()),
    }
}

async fn serve(
    arguments: &Arguments,
    pages: &mut JoinSet<()>,
    health: &Health,
    registry: Registry,
) -> anyhow::Result<()> {
    if let Some(address) = arguments.metrics_bind_address.0 {
        let address = pages::serve_metrics(pages, address, registry).await?;
        tracing::info!(%address, "metrics are served");
    }
    if let Some(address) = arguments.health_probe_bind_address.0 {
        let address = pages::serve_health(pages, address, health.clone()).await?;
        tracing::info!(%address, "health is served");
    }
    Ok(())
}

/// Holds the lead, where there are several to choose from.
async fn act(arguments: &Arguments, client: Client, health: &Health) -> anyhow::Result<()> {
    health.set_ready(true);
    tracing::info!(namespace = arguments.scope().unwrap_or("all"), "looking after");
    match lead(arguments, &client).await {
        None => std::future::pending().await,
        Some(holder) => {
            tracing::debug!(left = ?holder.leadership().left(), "leading");
            holder.hold().await;
            anyhow::bail!("the lead was lost; another controller may act now")
        }
    }
}

/// The lead, where there are several to choose from.
async fn lead(arguments: &Arguments, client: &Client) -> Option<Holder> {
    if !arguments.leader_elect {
        return None;
    }
    let name = format!("{}_{}", arguments.pod_name, std::process::id());
    Some(Candidate::new(client.clone(), &arguments.namespace, &name).win().await)
}

async fn told_to_stop() {
    let stopped = async |kind| match signal(kind) {
        Ok(mut signal) => {
            signal.recv().await;
        }
        Err(_) => std::future::pending().await,
    };
    tokio::select! {
        () = stopped(SignalKind::terminate()) => {}
        () = stopped(SignalKind::interrupt()) => {}
    }
    tracing::info!("told to stop");
}
