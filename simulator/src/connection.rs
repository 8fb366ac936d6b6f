//! One connection: reads each request whole, notes it, lets the faults have their way, and passes it on
//! to the APIs. Closes when idle for too long, if the settings say so.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::service::Service as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::apis::{Refusal, Turn};
use crate::engine::{Engine, Phase};
use crate::faults::DoorWhileLoading;
use crate::request_log::Entry;
use crate::wire::{Wire, WireFaults};

/// What a connection needs to serve its requests.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) number: u64,
    pub(crate) engine: Arc<Engine>,
    pub(crate) router: Router,
}

/// Serves a connection to its end.
pub(crate) async fn serve(connection: Connection, stream: TcpStream) {
    // Without it single tokens would be held back.
    let _ = stream.set_nodelay(true);
    let faults = Arc::new(WireFaults::default());
    let keep_alive = connection.engine.settings.keep_alive;
    let open_requests = watch::Sender::new(0_usize);
    let mut idle = open_requests.subscribe();
    let wire = TokioIo::new(Wire::new(stream, Arc::clone(&faults)));
    let service = hyper::service::service_fn(move |request| {
        let open = OpenRequest::new(&open_requests);
        let (connection, faults) = (connection.clone(), Arc::clone(&faults));
        async move { Ok::<_, Infallible>(connection.answer(request, faults, open).await) }
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().header_read_timeout(None).max_buf_size(1 << 20);
    let mut serving = std::pin::pin!(builder.serve_connection_with_upgrades(wire, service));
    tokio::select! {
        // A connection that breaks off is the client's affair, or a fault that was asked for.
        _ = serving.as_mut() => return,
        () = idle_for(&mut idle, keep_alive) => {}
    }
    serving.as_mut().graceful_shutdown();
    let _ = serving.await;
}

/// Returns when there was no request for so long.
async fn idle_for(open: &mut watch::Receiver<usize>, keep_alive: Option<Duration>) {
    let Some(keep_alive) = keep_alive else { return std::future::pending().await };
    loop {
        if open.wait_for(|count| *count == 0).await.is_err() {
            return;
        }
        match tokio::time::timeout(keep_alive, open.changed()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
}

/// Counts as a request of the connection for as long as it lives.
#[derive(Debug)]
struct OpenRequest(watch::Sender<usize>);

impl OpenRequest {
    fn new(count: &watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count.clone())
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl Connection {
    async fn answer(
        self,
        request: Request<Incoming>,
        wire: Arc<WireFaults>,
        open: OpenRequest,
    ) -> Response<Noted> {
        let (head, body) = request.into_parts();
        let mut entry = self.engine.log.begin(self.number, &head);
        let response = self.respond(head, body, &entry, wire).await;
        entry.answered(response.status());
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            // What comes after it is no answer any more.
            entry.finished();
        }
        response.map(|body| Noted { body, entry, _open: open })
    }

    async fn respond(
        &self,
        mut head: http::request::Parts,
        body: Incoming,
        entry: &Entry,
        wire: Arc<WireFaults>,
    ) -> Response<Body> {
        let Ok(body) = body.collect().await else {
            return Refusal::bad_request("the body ended before its end").into();
        };
        let body: Bytes = body.to_bytes();
        entry.body_read(&body);
        let settings = &self.engine.settings;
        let loading = matches!(*self.engine.phase.borrow(), Phase::Loading(_));
        if loading && settings.loading_faults.door == DoorWhileLoading::Silent {
            return std::future::pending().await;
        }
        let mut faults = self.engine.faults();
        if settings.request_faults {
            match faults.with_headers(&head.headers) {
                Ok(asked) => faults = asked,
                Err(error) => return Refusal::bad_request(&error.to_string()).into(),
            }
        }
        let for_models = !matches!(head.uri.path(), "/health" | "/metrics" | "/simulate/requests");
        if for_models {
            if faults.never_answers {
                return std::future::pending().await;
            }
            wire.tear_writes(faults.one_byte_writes);
            if !faults.header_delay.is_zero() {
                tokio::time::sleep(faults.header_delay).await;
            }
        }
        head.extensions.insert(Turn { faults, wire });
        let request = Request::from_parts(head, Body::from(body));
        match TowerToHyperService::new(self.router.clone()).call(request).await {
            Ok(response) => response,
        }
    }
}

/// The body of an answer; notes in the log whether it was handed over whole.
#[derive(Debug)]
struct Noted {
    body: Body,
    entry: Entry,
    _open: OpenRequest,
}

impl hyper::body::Body for Noted {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || (matches!(frame, Some(Ok(_))) && self.body.is_end_stream()) {
            self.entry.finished();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        // Asked to the end, so that the end is noted.
        false
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
