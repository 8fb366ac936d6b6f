//! The HTTP around the extender: one port for kube-scheduler, health, metrics and what is there to look at.

use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use flexinfer_telemetry::traces::Span;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::arguments::Arguments;
use super::deciding::Extender;
use super::protocol::BadQuestion;

/// A question with thousands of whole nodes is long.
const LONGEST: usize = 512 << 20;

/// Answers until SIGTERM or SIGINT.
pub(super) async fn serve(arguments: &Arguments, extender: Arc<Extender>) -> anyhow::Result<()> {
    let mut terminate =
        signal(SignalKind::terminate()).context("signals cannot be listened for")?;
    let mut interrupt =
        signal(SignalKind::interrupt()).context("signals cannot be listened for")?;
    let port = arguments.port;
    let listener = TcpListener::bind((arguments.host, port)).await.with_context(|| {
        format!("port {port} cannot be listened on; choose another with --port")
    })?;
    let address = listener.local_addr().context("the extender has no address")?;
    tracing::info!(%address, "the extender can be asked");
    let stopped = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    let serving = axum::serve(listener, router(extender)).with_graceful_shutdown(stopped);
    serving.await.context("the extender cannot be asked any more")
}

fn router(extender: Arc<Extender>) -> Router {
    Router::new()
        .route("/filter", post(filter))
        .route("/score", post(score))
        .route("/prioritize", post(score))
        .route("/healthz", get(health))
        .route("/metrics", get(metrics))
        .route("/debug/score", get(recent))
        .layer(DefaultBodyLimit::max(LONGEST))
        .with_state(extender)
}

async fn filter(State(extender): State<Arc<Extender>>, head: HeaderMap, body: Bytes) -> Response {
    let span = extender.tracer.answering("scheduler.filter", &head);
    answer(extender.filter(&body), &span)
}

async fn score(State(extender): State<Arc<Extender>>, head: HeaderMap, body: Bytes) -> Response {
    let span = extender.tracer.answering("scheduler.score", &head);
    answer(extender.score(&body), &span)
}

fn answer(answered: Result<Vec<u8>, BadQuestion>, span: &Span) -> Response {
    match answered {
        Ok(answer) => json(answer),
        Err(error) => {
            tracing::warn!(error = %error, "a question cannot be understood");
            span.fail("not understood");
            (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response()
        }
    }
}

async fn health(State(extender): State<Arc<Extender>>) -> Response {
    let awaited = extender.awaited();
    if awaited.is_empty() {
        return "ok\n".into_response();
    }
    let text = format!("has not seen all {} yet\n", awaited.join(" and "));
    (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
}

async fn metrics(State(extender): State<Arc<Extender>>) -> Response {
    match extender.metrics.page() {
        Ok(page) => ([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], page).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn recent(State(extender): State<Arc<Extender>>) -> Response {
    match extender.recent.page() {
        Ok(page) => json(page),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

fn json(body: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
