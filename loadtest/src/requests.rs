//! A closed loop: each connection sends its next request when the answer to the last one is whole.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use hdrhistogram::Histogram;
use http::Request;
use http::header::HOST;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::work::Work;

/// What a run of the loop saw.
pub(crate) struct Outcome {
    pub requests: u64,
    pub took: Duration,
    /// Nanoseconds from sending a request to the end of its answer.
    pub latencies: Histogram<u64>,
}

/// Keeps `connections` busy for `duration`. Any answer but 200 ends the run with an error: a proxy that
/// refuses is not fast.
pub(crate) async fn closed_loop(
    address: &str,
    connections: usize,
    duration: Duration,
) -> Result<Outcome> {
    let begun = Instant::now();
    let mut running = JoinSet::new();
    for _ in 0..connections {
        let address = address.to_owned();
        running.spawn(async move { one_connection(&address, begun + duration).await });
    }
    let mut latencies = Histogram::new(3)?;
    while let Some(finished) = running.join_next().await {
        latencies.add(finished??)?;
    }
    Ok(Outcome { requests: latencies.len(), took: begun.elapsed(), latencies })
}

async fn one_connection(address: &str, until: Instant) -> Result<Histogram<u64>> {
    let work = Work::chat();
    let mut latencies = Histogram::new(3)?;
    let mut sender = connect(address).await?;
    while Instant::now() < until {
        let request = work.request(address)?;
        let sent = Instant::now();
        sender.ready().await.context("the connection was closed between requests")?;
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        if status != http::StatusCode::OK {
            bail!("{address} answered {status}: {}", String::from_utf8_lossy(&body));
        }
        latencies.record(u64::try_from(sent.elapsed().as_nanos())?)?;
    }
    Ok(latencies)
}

/// What is at a path, which must be there, asked for on a new connection.
pub(crate) async fn get(address: &str, path: &str) -> Result<String> {
    let request = Request::get(path).header(HOST, address).body(Full::default())?;
    let answer = connect(address).await?.send_request(request).await?;
    let status = answer.status();
    ensure!(status.is_success(), "{address}{path} was answered with {status}");
    let page = answer.into_body().collect().await?.to_bytes();
    String::from_utf8(page.into()).with_context(|| format!("{address}{path} is no text"))
}

/// Opens a connection of its own.
pub(crate) async fn connect(address: &str) -> Result<SendRequest<Full<Bytes>>> {
    let socket = TcpStream::connect(address).await;
    let socket = socket.with_context(|| format!("cannot connect to {address}"))?;
    socket.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
    // Its errors come out of the request that met them.
    tokio::spawn(async { drop(connection.await) });
    Ok(sender)
}
