//! The engine of the bench: answers a chat at once with a fixed text, or by events at a set rate for as long
//! as the client stays. It does as little as can be, so that the proxy before it is what is measured.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use clap::Parser;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::time::Interval;

const ANSWER: &str = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":"Here is an answer of a usual length, long enough to be a sentence or two and short enough that the time goes into the proxy and not into copying it from one place to another. It ends here."},"finish_reason":"stop"}],"usage":{"prompt_tokens":420,"completion_tokens":42,"total_tokens":462}}"#;
const EVENT: &str = "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"bench\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n";

#[derive(Parser)]
struct Arguments {
    /// Events per second on each stream
    #[arg(long, default_value_t = 20)]
    rate: u32,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let serve = service_fn(move |request| answer(request, arguments.rate));
        let connection = hyper::server::conn::http1::Builder::new();
        // A client that leaves in the middle of a stream is how each stream ends here.
        let connection = connection.serve_connection(TokioIo::new(socket), serve);
        tokio::spawn(async { drop(connection.await) });
    }
}

async fn answer(
    request: Request<Incoming>,
    rate: u32,
) -> Result<Response<BoxBody<Bytes, Infallible>>, hyper::Error> {
    let echo = request.headers().contains_key("x-echo-model");
    let body = request.into_body().collect().await?.to_bytes();
    let stream = contains(&body, br#""stream":true"#);
    let content = if stream {
        Events { ticks: tokio::time::interval(Duration::from_secs(1) / rate) }.boxed()
    } else {
        Full::from(ANSWER).boxed()
    };
    let mut response = Response::new(content);
    let kind = if stream { "text/event-stream" } else { "application/json" };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if echo && let Ok(model) = HeaderValue::from_str(&model(&body)) {
        response.headers_mut().insert(HeaderName::from_static("x-echo-model"), model);
    }
    Ok(response)
}

fn model(body: &[u8]) -> String {
    let value: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    value.get("model").and_then(|model| model.as_str()).unwrap_or_default().to_owned()
}

fn contains(body: &[u8], wanted: &[u8]) -> bool {
    body.windows(wanted.len()).take(128).any(|window| window == wanted)
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
