//! One question to an engine over HTTP, on a connection of its own, and what its answer means. It is asked in
//! the protocol that requests reach it by.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use flexinfer_core::backends::{Call, Probe, Verdict};
use flexinfer_core::effective::EngineProtocol;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::way::Way;

/// A machine that is gone answers to no attempt at a connection.
const CONNECTED_WITHIN: Duration = Duration::from_secs(10);

/// An answer that is longer is read no further: no engine says that much about its health.
const LONGEST_ANSWER: usize = 256 * 1024;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AskError {
    #[error("nothing listens at {address}")]
    Unreachable { address: SocketAddr, source: io::Error },
    #[error("no TLS is possible with it")]
    Insecure(#[source] io::Error),
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

/// Asks `probe` and waits for the answer no longer than `patience`.
pub(crate) async fn probe(way: &Way<'_>, probe: &Probe, patience: Duration) -> Answer {
    let path = match probe {
        Probe::Http { path, .. } => path,
        Probe::Tcp => {
            return match timeout(patience, TcpStream::connect(way.address)).await {
                Ok(Ok(_)) => Answer::Ready,
                Ok(Err(_)) | Err(_) => Answer::Silence,
            };
        }
    };
    let asked = async {
        let response = send(way, "GET", path, None).await?;
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
        Ok(Err(AskError::Insecure(error))) => {
            Answer::Garbage(format!("no TLS is possible with it: {error}"))
        }
        Ok(Err(_)) | Err(_) => Answer::Silence,
    }
}

/// Sends `call` and returns its answer as soon as its head has come.
pub(crate) async fn call(way: &Way<'_>, call: &Call) -> Result<Response<Incoming>, AskError> {
    let body = call.body.as_ref().map(|body| Bytes::from(body.to_string()));
    send(way, call.method, &call.path, body).await
}

async fn send(
    way: &Way<'_>,
    method: &str,
    path: &str,
    body: Option<Bytes>,
) -> Result<Response<Incoming>, AskError> {
    let address = way.address;
    let late = io::Error::from(io::ErrorKind::TimedOut);
    let stream = timeout(CONNECTED_WITHIN, TcpStream::connect(address)).await.unwrap_or(Err(late));
    let stream = stream.map_err(|source| AskError::Unreachable { address, source })?;
    let protocol = way.spoken.protocol;
    let Some(name) = &way.spoken.tls_name else {
        let question = question(way, "http", method, path, body)?;
        return exchange(stream, protocol == EngineProtocol::H2c, question).await;
    };
    let secured = way.trust().secure(stream, name, protocol).await.map_err(AskError::Insecure)?;
    let http2 = secured.get_ref().1.alpn_protocol() == Some(b"h2");
    exchange(secured, http2, question(way, "https", method, path, body)?).await
}

fn question(
    way: &Way<'_>,
    scheme: &str,
    method: &str,
    path: &str,
    body: Option<Bytes>,
) -> Result<Request<Full<Bytes>>, http::Error> {
    let host = way.host();
    let mut request = Request::builder().method(method).uri(format!("{scheme}://{host}{path}"));
    if let Some(key) = way.key() {
        request = request.header(header::AUTHORIZATION, key);
    }
    if body.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    request.body(Full::new(body.unwrap_or_default()))
}

/// Asks over `stream`, whose connection ends by itself once the answer was read or dropped.
async fn exchange<S>(
    stream: S,
    http2: bool,
    mut question: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, AskError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = TokioIo::new(stream);
    if http2 {
        let made = http2::handshake(TokioExecutor::new(), stream).await;
        let (mut sender, connection) = made.map_err(kind_of)?;
        tokio::spawn(connection);
        return sender.send_request(question).await.map_err(kind_of);
    }
    // HTTP/1.1 names the host in a header, and in the address only for proxies.
    let uri = std::mem::take(question.uri_mut());
    if let Some(host) = uri.authority() {
        let host = HeaderValue::try_from(host.as_str()).map_err(http::Error::from)?;
        question.headers_mut().insert(header::HOST, host);
    }
    *question.uri_mut() = uri.path_and_query().cloned().map_or_else(Uri::default, Uri::from);
    question.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    let (mut sender, connection) = http1::handshake(stream).await.map_err(kind_of)?;
    tokio::spawn(connection);
    sender.send_request(question).await.map_err(kind_of)
}

fn kind_of(error: hyper::Error) -> AskError {
    if error.is_parse() { AskError::NoHttp(error) } else { AskError::BrokenOff(error) }
}
