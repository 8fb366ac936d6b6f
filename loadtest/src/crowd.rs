//! A crowd before one sleeping model: all must be answered by one activation; what a waiter costs is memory.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use tokio::task::JoinSet;

use crate::memory;
use crate::requests::connect;
use crate::targets::{Target, sleeping_gateway};
use crate::work::{MODEL, Work};

/// A bound on gathering the crowd and on answering it.
const PATIENCE: Duration = Duration::from_mins(2);

/// What became of the crowd.
#[derive(Clone, Copy)]
pub(crate) struct Crowd {
    pub(crate) waiters: usize,
    pub(crate) answered: usize,
    /// The gateway's memory for each: its connection and its waiting request of 2 KB.
    pub(crate) bytes_per_waiter: u64,
}

/// Starts a gateway with a sleeping model and sends everyone at once.
pub(crate) async fn gather(program: &Path, folder: &Path, waiters: usize) -> Result<Crowd> {
    let mut gateway = sleeping_gateway(program, folder, waiters)?;
    gateway.serves().await?;
    let alone = memory::resident(gateway.pid())?;
    let mut connections = Vec::with_capacity(waiters);
    for _ in 0..waiters {
        connections.push(connect(&gateway.address).await?);
    }
    let mut asking = JoinSet::new();
    for connection in connections {
        asking.spawn(ask(connection, gateway.address.clone()));
    }
    let waiting = waiting(&gateway, waiters).await?;
    let mut answered = 0;
    let answers = async {
        while let Some(answer) = asking.join_next().await {
            answered += usize::from(answer.is_ok_and(|served| served));
        }
    };
    tokio::time::timeout(PATIENCE, answers)
        .await
        .context("some of the crowd were never answered")?;
    let bytes_per_waiter = waiting.saturating_sub(alone) / u64::try_from(waiters)?.max(1);
    Ok(Crowd { waiters, answered, bytes_per_waiter })
}

async fn ask(mut connection: SendRequest<Full<bytes::Bytes>>, address: String) -> bool {
    let Ok(request) = Work::chat().request(&address) else { return false };
    match connection.send_request(request).await {
        Ok(answer) if answer.status().is_success() => answer.into_body().collect().await.is_ok(),
        _ => false,
    }
}

/// The gateway's memory once its own count says that everyone waits.
async fn waiting(gateway: &Target, waiters: usize) -> Result<u64> {
    let begun = Instant::now();
    loop {
        let waiting = queue_depth(gateway).await?;
        if waiting == waiters {
            return memory::resident(gateway.pid());
        }
        if begun.elapsed() > PATIENCE {
            bail!("only {waiting} of {waiters} ever waited at once");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn queue_depth(gateway: &Target) -> Result<usize> {
    let page = gateway.metrics().await?;
    let name = format!("flexinfer_proxy_queue_depth{{model=\"{MODEL}\"}} ");
    let depth = page.lines().find_map(|line| line.strip_prefix(name.as_str()));
    depth.with_context(|| format!("/metrics has no {name}"))?.parse().context("not a count")
}
