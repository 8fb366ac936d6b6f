//! The controller itself: pages, leadership, watches, and the groups looked at as they change.

mod admission;
mod arguments;
mod benchmarks;
mod farewell;
mod objects;

use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use kube::Client;
use prometheus::Registry;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

pub use admission::Admission;
pub use arguments::{Arguments, Binding};
pub use benchmarks::Measuring;
pub use objects::Objects;

use crate::asking;
use crate::clock::Clock;
use crate::leadership::{Candidate, Holder, Leadership};
use crate::metrics::Metrics;
use crate::pages::{self, Health};
use crate::reconcile::Reconciler;
use crate::speeds::Speeds;
use crate::webhooks;
use crate::world::{self, Watching, World};

/// How long the API server may still ask a controller that was told to stop: it takes a moment until it knows.
const LINGER: Duration = Duration::from_secs(3);

/// How long it may take to let the Models go of a namespace that is being deleted. The pod has half a minute to end.
const FAREWELL: Duration = Duration::from_secs(10);

/// Looks after Models until it is told to stop or loses the lead.
pub async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if arguments.print_settings {
        println!("{}", serde_json::to_string_pretty(&arguments.shown())?);
        return Ok(());
    }
    let client = Client::try_default().await.map_err(|error| {
        anyhow!("there is no cluster to look after; run it in a pod with a service account, or set KUBECONFIG ({error})")
    })?;
    let registry = Registry::new();
    let metrics = (Metrics::new(&registry)?, Speeds::new(&registry)?);
    let admission = &arguments.admission;
    let asked = admission.webhook_bind_address.0.filter(|_| admission.enable_webhooks);
    let (health, mut pages) = (Health::new(asked.is_some()), JoinSet::new());
    serve(arguments, &mut pages, &health, registry).await?;
    if let Some(address) = asked {
        let (client, health) = (client.clone(), health.clone());
        let address = webhooks::serve(&mut pages, address, client, arguments, health).await?;
        tracing::info!(%address, "the API server can ask");
    }

    act(arguments, client, metrics, &health, told_to_stop()).await?;
    if asked.is_some() {
        // Another may lead already; who is still sent here is still answered.
        tokio::time::sleep(LINGER).await;
    }
    Ok(())
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

/// Watches, and acts while it leads, until it is told to `stop`.
async fn act(
    arguments: &Arguments,
    client: Client,
    metrics: (Metrics, Speeds),
    health: &Health,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    tokio::pin!(stop);
    let world = Arc::new(World::new(Clock::start()));
    let settings = arguments.settings();
    let benchmarks = &settings.benchmarks;
    let watching = Watching {
        namespace: arguments.scope(),
        results: (&benchmarks.results_namespace, &benchmarks.results),
    };
    let (_watches, watched) = world::watch(&client, &watching, &world);
    tokio::select! {
        () = world::synced(watched) => {}
        () = &mut stop => return Ok(()),
    }
    health.set_listed();
    let namespace = arguments.scope().unwrap_or("all");
    tracing::info!(namespace, models = world.models(), "everything is listed");
    let mut holder = tokio::select! {
        holder = lead(arguments, &client) => holder,
        () = &mut stop => return Ok(()),
    };
    let leadership = holder.as_ref().map_or(Leadership::alone(), Holder::leadership);
    let asking = asking::ask_how_far(Arc::clone(&world));
    let reconciler = Reconciler::new(client.clone(), world, settings, leadership, metrics);
    let stopped = tokio::select! {
        () = reconciler.work(arguments.concurrency.get()) => false,
        () = hold(holder.as_mut()) => false,
        () = asking => false,
        () = &mut stop => true,
    };
    // Nothing is on its way any more, so another may begin at once.
    drop(reconciler);
    if stopped {
        say_farewell(&client, &arguments.namespace).await;
    }
    match (stopped, holder) {
        (true, Some(holder)) => holder.give_up().await,
        (true, None) => {}
        (false, _) => anyhow::bail!("the lead was lost; another controller may act now"),
    }
    Ok(())
}

/// What is left to do for the namespace that this process is in, before it may not do so any more.
async fn say_farewell(client: &Client, namespace: &str) {
    let told = tokio::time::timeout(FAREWELL, farewell::let_go(client, namespace)).await;
    match told {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::warn!(%error, "whether the namespace is being deleted is not known");
        }
        Err(_) => tracing::warn!("the Models of the namespace were not let go in time"),
    }
}

/// Keeps the lead; returns when it is lost, and never where there is none to keep.
async fn hold(holder: Option<&mut Holder>) {
    match holder {
        Some(holder) => holder.hold().await,
        None => std::future::pending().await,
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
