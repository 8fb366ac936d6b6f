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
#[derive(Clone, Debug)]
pub(crate) struct Health {
    listed: Arc<AtomicBool>,
    trusted: Arc<AtomicBool>,
}

impl Health {
    /// Of a process that has just started; with `webhooks` it is of use once API servers can ask it.
    pub(crate) fn new(webhooks: bool) -> Self {
        Self { listed: Arc::default(), trusted: Arc::new(AtomicBool::new(!webhooks)) }
    }

    /// The cluster's objects are all known.
    pub(crate) fn set_listed(&self) {
        self.listed.store(true, Ordering::Release);
    }

    /// Whether API servers trust the certificate that the webhooks show.
    pub(crate) fn set_trusted(&self, trusted: bool) {
        self.trusted.store(trusted, Ordering::Release);
    }

    fn answer(&self) -> (StatusCode, &'static str) {
        let awaited = if !self.listed.load(Ordering::Acquire) {
            "the cluster's objects are not all listed yet; the log says what is in the way\n"
        } else if !self.trusted.load(Ordering::Acquire) {
            "the webhooks have no certificate that the API server trusts yet; the log says why\n"
        } else {
            return (StatusCode::OK, "ok\n");
        };
        (StatusCode::SERVICE_UNAVAILABLE, awaited)
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
