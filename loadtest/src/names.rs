//! Requests for models that nobody has, by callers that nobody knows: what clients invent must not be kept.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use clap::Args;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use tokio::task::JoinSet;

use crate::requests::connect;
use crate::targets::{self, Setting, Target};
use crate::work::{BEARER, MODEL};
use crate::{binaries, memory};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Where our binaries are; default beside this one
    #[arg(long)]
    binaries: Option<PathBuf>,
    /// How many requests, each with a name of its own
    #[arg(long, default_value_t = 1_000_000)]
    requests: u64,
    /// Connections at once
    #[arg(long, default_value_t = 32)]
    connections: u64,
    /// End with one JSON object
    #[arg(long)]
    json: bool,
}

/// Less than this a kept name cannot take.
const BYTES_OF_A_NAME: u64 = 8;

/// What an allocator may keep for itself.
const SLACK: u64 = 8 << 20;

/// The gateway at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Look {
    memory: u64,
    series: usize,
}

/// Sends a tenth of the requests, looks, sends the others, looks again.
pub(crate) async fn run(arguments: &Arguments) -> Result<()> {
    let ours = binaries::folder(arguments.binaries.as_deref())?;
    let folder = tempfile::tempdir().context("cannot create a folder for the gateway")?;
    let (before, after) = measure(arguments, &ours, folder.path()).await?;
    let requests = arguments.requests - arguments.requests / 10;
    let growth = after.memory.saturating_sub(before.memory);
    println!("{requests} requests with names that were never used before and will never be again");
    println!("memory    {:>9} KiB before, {:>9} after", before.memory >> 10, after.memory >> 10);
    println!("metrics   {:>9} series before, {:>6} after", before.series, after.series);
    if arguments.json {
        let object = serde_json::json!({
            "requests": requests, "growth_bytes": growth, "memory_bytes": after.memory,
            "series_before": before.series, "series_after": after.series,
        });
        println!("{object}");
    }
    ensure!(after.series == before.series, "names of clients became series of metrics");
    let allowed = SLACK.max(requests * BYTES_OF_A_NAME);
    ensure!(growth <= allowed, "memory grew by {growth} bytes; {allowed} could be explained");
    Ok(())
}

async fn measure(arguments: &Arguments, ours: &Path, folder: &Path) -> Result<(Look, Look)> {
    let engine = targets::engine(ours, Duration::ZERO)?;
    let setting = Setting { folder, engine: &engine.address.clone(), threads: 2 };
    let gateway = ours.join("flexinfer-gateway");
    let mut gateway = targets::gateway_with_everything(&gateway, &setting)?;
    gateway.model_upstream().await?;
    let first = arguments.requests / 10;
    send(&gateway, 0..first, arguments.connections).await?;
    let before = look(&gateway).await?;
    send(&gateway, first..arguments.requests, arguments.connections).await?;
    Ok((before, look(&gateway).await?))
}

async fn send(gateway: &Target, numbers: Range<u64>, connections: u64) -> Result<()> {
    let mut running = JoinSet::new();
    for connection in 0..connections {
        let own = numbers.start + connection..numbers.end;
        let own = own.step_by(usize::try_from(connections)?);
        running.spawn(ask_each(gateway.address.clone(), own));
    }
    while let Some(sent) = running.join_next().await {
        sent??;
    }
    Ok(())
}

async fn ask_each(address: String, numbers: impl Iterator<Item = u64>) -> Result<()> {
    let mut sender = connect(&address).await?;
    for number in numbers {
        let (request, wanted) = request(&address, number)?;
        // A gateway may close a connection after any answer.
        if sender.ready().await.is_err() {
            sender = connect(&address).await?;
        }
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        if status != wanted {
            bail!("request {number} was answered {status}: {}", String::from_utf8_lossy(&body));
        }
    }
    Ok(())
}

/// A chat with an invented name in one of the places that a name may stand in, or an invented key; and how it
/// must be answered.
fn request(address: &str, number: u64) -> Result<(Request<Full<Bytes>>, StatusCode)> {
    // No two alike, and nothing that begins alike.
    let invented = format!("{:016x}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut path = "/v1/chat/completions".to_owned();
    let (mut model, mut header, mut key) = (MODEL, None, BEARER.to_owned());
    match number % 4 {
        0 => model = &invented,
        1 => header = Some(&invented),
        2 => path = format!("/model/{invented}{path}"),
        _ => key = format!("Bearer {invented}"),
    }
    let body = format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"Hi"}}]}}"#);
    let request = Request::post(path).header(HOST, address).header(AUTHORIZATION, key);
    let request = request.header(CONTENT_TYPE, "application/json");
    let request = match header {
        Some(name) => request.header("x-model-id", name),
        None => request,
    };
    let wanted = if number % 4 == 3 { StatusCode::UNAUTHORIZED } else { StatusCode::NOT_FOUND };
    Ok((request.body(Full::from(body))?, wanted))
}

async fn look(gateway: &Target) -> Result<Look> {
    let series = gateway.metrics().await?.lines().filter(|line| !line.starts_with('#')).count();
    Ok(Look { memory: memory::resident(gateway.pid())?, series })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_of_a_name_has_its_turn() {
        let of = |number| request("localhost", number).unwrap();
        let (names, status): (Vec<_>, Vec<_>) = (0..4).map(of).unzip();
        assert!(names[1].headers().contains_key("x-model-id"));
        assert!(names[2].uri().path().starts_with("/model/"));
        assert_ne!(names[3].headers()[AUTHORIZATION], BEARER);
        assert_eq!(status[0], StatusCode::NOT_FOUND);
        assert_eq!(status[3], StatusCode::UNAUTHORIZED);
    }
}
