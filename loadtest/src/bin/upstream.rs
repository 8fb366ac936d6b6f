//! The engine of the bench: answers a chat at once with a fixed text, or by events at a set rate for as long
//! as the client stays. It does as little as can be, so that the proxy before it is what is measured. `/count`
//! tells how many chats came.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use clap::Parser;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::time::Interval;

const ANSWER: &str = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":"Here is an answer of a usual length, long enough to be a sentence or two and short enough that the time goes into the proxy and not into copying it from one place to another. It ends here."},"finish_reason":"stop"}],"usage":{"prompt_tokens":420,"completion_tokens":42,"total_tokens":462}}"#;
/// What routers ask for to know whether an engine lives and what it has.
const MODELS: &str = r#"{"object":"list","data":[{"id":"bench","object":"model","created":1700000000,"owned_by":"bench"}]}"#;
const EVENT: &str = "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"bench\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n";

#[derive(Parser)]
struct Arguments {
    /// Events per second on each stream
    #[arg(long, default_value_t = 20)]
    rate: u32,
    /// Milliseconds before each answer
    #[arg(long, default_value_t = 0)]
    delay: u64,
}

/// The chats that came so far.
static CHATS: AtomicU64 = AtomicU64::new(0);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let delay = Duration::from_millis(arguments.delay);
        let serve = service_fn(move |request| answer(request, arguments.rate, delay));
        let connection = hyper::server::conn::http1::Builder::new();
        // A client that leaves in the middle of a stream is how each stream ends here.
        let connection = connection.serve_connection(TokioIo::new(socket), serve);
        tokio::spawn(async { drop(connection.await) });
    }
}

async fn answer(
    request: Request<Incoming>,
    rate: u32,
    delay: Duration,
) -> Result<Response<BoxBody<Bytes, Infallible>>, hyper::Error> {
    if request.method() == Method::GET {
        let count = request.uri().path() == "/count";
        let count = count.then(|| CHATS.load(Ordering::Relaxed).to_string());
        return Ok(Response::new(Full::from(count.map_or(MODELS.into(), Bytes::from)).boxed()));
    }
    CHATS.fetch_add(1, Ordering::Relaxed);
    let body = request.into_body().collect().await?.to_bytes();
    // Some proxies write the body anew, in an order of their own.
    let stream = memchr::memmem::find(&body, br#""stream":true"#).is_some();
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let content = if stream {
        Events { ticks: tokio::time::interval(Duration::from_secs(1) / rate) }.boxed()
    } else {
        let echo = memchr::memmem::find(&body, br#""user":"echo-model""#).is_some();
        let answer = echo.then(|| ANSWER.replace(r#""bench""#, &model(&body).to_string()));
        Full::from(answer.map_or(ANSWER.into(), Bytes::from)).boxed()
    };
    let mut response = Response::new(content);
    let kind = if stream { "text/event-stream" } else { "application/json" };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}

/// The model's name as it stands in JSON.
fn model(body: &[u8]) -> Value {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    value.get("model").cloned().unwrap_or_default()
}

/// A body that gives one event per tick and never ends.
struct Events {
    ticks: Interval,
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        ready!(self.ticks.poll_tick(context));
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(EVENT.as_bytes())))))
    }
}
