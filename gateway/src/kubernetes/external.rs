//! Engines that somebody else runs, at an address that the Model says: resolved again and again, and asked
//! like any other endpoint.

use std::net::SocketAddr;
use std::sync::Weak;
use std::time::Duration;

use flexinfer_core::activation::{Failure, Reason, Standing};
use flexinfer_core::backends::Launch;
use flexinfer_core::ids::{EndpointId, ModelId};
use flexinfer_core::queueing::Listed;
use flexinfer_crds::model::Phase;
use tokio::time::{Instant, sleep};

use super::pools::Pools;

/// How often the name is resolved anew.
const BETWEEN_LOOKUPS: Duration = Duration::from_secs(30);
/// How often it is looked whether anything answers.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
/// How long it may be away before requests that wait for it are told: somebody may be starting it.
const PATIENCE_WITH_ABSENCE: Duration = Duration::from_secs(3);

/// Keeps the pool of `model` in step with the engine at `launch`, until it is aborted.
pub(super) async fn follow(pools: Weak<Pools>, model: ModelId, launch: Launch) {
    let mut looked_up: Option<Instant> = None;
    let mut absent_since: Option<Instant> = None;
    loop {
        if looked_up.is_none_or(|at| at.elapsed() >= BETWEEN_LOOKUPS) {
            looked_up = Some(Instant::now());
            let found = tokio::net::lookup_host((launch.host.as_str(), launch.port)).await;
            let Some(pools) = pools.upgrade() else { return };
            // A name server that is away changes nothing.
            if let Ok(found) = found {
                let listed = found.map(listed).collect();
                pools.act(&model, |pool, now| pool.list(now, listed));
            }
        }
        let Some(pools) = pools.upgrade() else { return };
        let Some(view) = pools.view(&model) else { return };
        if view.ready() {
            absent_since = None;
        }
        let since = *absent_since.get_or_insert_with(Instant::now);
        let standing = if view.ready() || since.elapsed() < PATIENCE_WITH_ABSENCE {
            Standing { phase: Some(Phase::Ready), ..Standing::default() }
        } else {
            Standing::failed(absent(&launch))
        };
        if (view.phase, &view.failure) != (standing.phase, &standing.failure) {
            pools.act(&model, |pool, now| pool.stand(now, standing));
        }
        drop(pools);
        sleep(BETWEEN_LOOKS).await;
    }
}

fn listed(address: SocketAddr) -> Listed {
    let id = EndpointId(address.to_string().into());
    Listed { id, address, ready: true, leaving: false }
}

fn absent(launch: &Launch) -> Failure {
    let place = format!("{}:{}", launch.host, launch.port);
    let message = format!("no engine answers at {place}; start it, or correct spec.config.url");
    Failure::new(Reason::Unreachable, message)
}
