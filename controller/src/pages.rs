//! Two small servers: health, for the kubelet, and metrics, for whoever scrapes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus::{Encoder as _, Registry, TextEncoder};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Whether the process is of use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    ready: Arc<AtomicBool>,
}

impl Health {
    /// It is, or is not any more.
    pub(crate) fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Release);
    }

    fn answer(&self) -> (StatusCode, &'static str) {
        if self.ready.load(Ordering::Acquire) {
            (StatusCode::OK, "ok\n")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "the cluster's objects are not all listed yet\n")
        }
    }
}

/// Serves `/healthz` and `/readyz` on `address`.
pub(crate) async fn serve_health(
    tasks: &mut JoinSet<()>,
    address: SocketAddr,
    health: Health,
) -> anyhow::Result<SocketAddr> {
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(move || async move { health.answer() }));
    serve(tasks, address, router).await
}

/// Serves `/metrics` on `address`.
pub(crate) async fn serve_metrics(
    tasks: &mut JoinSet<()>,
    address: SocketAddr,
    registry: Registry,
) -> anyhow::Result<SocketAddr> {
    let router = Router::new().route("/metrics", get(move || async move { page(&registry) }));
    serve(tasks, address, router).await
}

async fn serve(
    tasks: &mut JoinSet<()>,
    address: SocketAddr,
    router: Router,
) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await;
    let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
    let address = listener.local_addr()?;
    tasks.spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "a page server ended");
        }
    });
    Ok(address)
}

fn page(registry: &Registry) -> Response {
    let mut text = Vec::new();
    let encoder = TextEncoder::new();
    match encoder.encode(&registry.gather(), &mut text) {
        Ok(()) => {
            ([(header::CONTENT_TYPE, encoder.format_type().to_owned())], text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
