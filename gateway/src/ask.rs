//! One question to an engine over HTTP, on a connection of its own, and what its answer means.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use flexinfer_core::backends::{Call, Probe, Verdict};
use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// An answer that is longer is read no further: no engine says that much about its health.
const LONGEST_ANSWER: usize = 256 * 1024;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    #[error("nothing listens at {address}")]
    Unreachable { address: SocketAddr, source: io::Error },
    #[error("the answer is no HTTP")]
    NoHttp(#[source] hyper::Error),
    #[error("the connection broke off")]
    BrokenOff(#[source] hyper::Error),
    #[error("the request cannot be written")]
    Request(#[from] http::Error),
}

/// What came of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Ready,
    NotYet,
    /// Nothing listens there, or nobody said anything in time.
    Silence,
    /// Something came that is not what the engine says; told for people.
    Garbage(String),
}

/// Asks `probe`, with `key` where the engine wants one, and waits for the answer no longer than `patience`.
pub(crate) async fn probe(
    address: SocketAddr,
    probe: &Probe,
    key: Option<HeaderValue>,
    patience: Duration,
) -> Answer {
    let path = match probe {
        Probe::Http { path, .. } => path,
        Probe::Tcp => {
            return match timeout(patience, TcpStream::connect(address)).await {
                Ok(Ok(_)) => Answer::Ready,
                Ok(Err(_)) | Err(_) => Answer::Silence,
            };
        }
    };
    let asked = async {
        let response = send(address, "GET", path, None, key).await?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), LONGEST_ANSWER).collect().await;
        // What cannot be read counts as nothing; the probe decides whether that will do.
        let body = body.map_or_else(|_| Bytes::new(), http_body_util::Collected::to_bytes);
        Ok::<_, AskError>(probe.judge(status, &body))
    };
    match timeout(patience, asked).await {
        Ok(Ok(Verdict::Ready)) => Answer::Ready,
        Ok(Ok(Verdict::NotYet)) => Answer::NotYet,
        Ok(Ok(Verdict::Garbage(what))) => Answer::Garbage(what),
        Ok(Err(AskError::NoHttp(error))) => Answer::Garbage(format!(
            "GET {path} was answered with something that is no HTTP ({error})"
        )),
        Ok(Err(_)) | Err(_) => Answer::Silence,
    }
}

/// Sends `call` and returns its answer as soon as its head has come.
pub(crate) async fn call(address: SocketAddr, call: &Call) -> Result<Response<Incoming>, AskError> {
    let body = call.body.as_ref().map(|body| Bytes::from(body.to_string()));
    send(address, call.method, &call.path, body, None).await
}

async fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    body: Option<Bytes>,
    key: Option<HeaderValue>,
) -> Result<Response<Incoming>, AskError> {
    let stream = TcpStream::connect(address)
        .await
        .map_err(|source| AskError::Unreachable { address, source })?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(kind_of)?;
    // Ends by itself once the answer was read or dropped.
    tokio::spawn(connection);
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, address.to_string())
        .header(header::CONNECTION, "close");
    if let Some(key) = key {
        request = request.header(header::AUTHORIZATION, key);
    }
    if body.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    let request = request.body(Full::new(body.unwrap_or_default()))?;
    sender.send_request(request).await.map_err(kind_of)
}

fn kind_of(error: hyper::Error) -> AskError {
    if error.is_parse() { AskError::NoHttp(error) } else { AskError::BrokenOff(error) }
}
