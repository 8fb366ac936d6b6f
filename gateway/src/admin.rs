//! The admin port: metrics, health, and pages for whoever wants to know what is going on. It answers for
//! as long as the process lives, also when requests are not taken any more.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use flexinfer_core::callers::Allowed;
use flexinfer_core::hosts::Hosts;
use flexinfer_core::rejection::Rejection;
use tokio::task::JoinHandle;
use tracing::error;

use crate::keys::Keys;
use crate::lifecycle::Lifecycle;
use crate::metrics::Metrics;
use crate::settings::Shown;
use crate::stages::identify::caller;

/// The pages there are, for whoever opens the port in a browser.
const INDEX: &str = r#"<!doctype html>
<html lang="en">
<title>FlexInfer gateway</title>
<h1>FlexInfer gateway</h1>
<ul>
<li><a href="/debug/models">/debug/models</a>: what every model is at
<li><a href="/debug/config">/debug/config</a>: the settings in force
<li><a href="/metrics">/metrics</a>: for Prometheus
<li><a href="/healthz">/healthz</a>: whether the process lives
<li><a href="/readyz">/readyz</a>: whether it takes requests
</ul>
"#;

const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The answer of `/debug/models`, made when it is asked for.
pub type ModelsPage = Arc<dyn Fn() -> serde_json::Value + Send + Sync>;

/// What the pages are made of.
#[derive(Clone)]
pub struct Pages {
    /// `/metrics`.
    pub metrics: Arc<Metrics>,
    /// Brings gauges up to date, before each look at the metrics.
    pub refresh: Arc<dyn Fn() + Send + Sync>,
    /// `/readyz`.
    pub lifecycle: Arc<Lifecycle>,
    /// `/debug/config`: the settings in force, secrets masked.
    pub settings: Arc<Shown>,
    /// `/debug/models`: phases, residents, queues, last log lines.
    pub models: ModelsPage,
    /// Who may see them.
    pub guard: Guard,
}

/// Who may see the pages; the debug pages tell more than health and metrics do.
#[derive(Clone)]
pub enum Guard {
    /// Whoever reaches the port sees all of them.
    Open,
    /// Whoever reaches it from this machine, by one of its names, sees all of them; nobody else sees any.
    Local(Hosts),
    /// The debug pages are for whoever has a key for every model; for nobody where there are no keys.
    Keyed(Option<Arc<Keys>>),
}

impl Guard {
    /// The answer to whoever may not see any page: one that a browser shows to a site that led it here.
    fn refusal(&self, headers: &HeaderMap) -> Option<Response> {
        let Self::Local(hosts) = self else { return None };
        let host = headers.get(HOST)?;
        let named = host.to_str().unwrap_or_default();
        if !named.is_empty() && hosts.allows(named) {
            return None;
        }
        let host = String::from_utf8_lossy(host.as_bytes()).into_owned();
        let rejection = Rejection::HostNotAllowed { host };
        Some((StatusCode::FORBIDDEN, rejection.message()).into_response())
    }

    /// The answer to whoever may not see the debug pages.
    fn debug_refusal(&self, headers: &HeaderMap) -> Option<Response> {
        match self {
            Self::Open | Self::Local(_) => None,
            Self::Keyed(Some(keys)) => match caller(keys, headers) {
                Ok(caller) if caller.models == Allowed::All => None,
                Ok(_) => Some((StatusCode::FORBIDDEN, NOT_ALL).into_response()),
                Err(rejection) => {
                    Some((StatusCode::UNAUTHORIZED, rejection.message()).into_response())
                }
            },
            Self::Keyed(None) => Some((StatusCode::FORBIDDEN, UNGUARDED).into_response()),
        }
    }
}

const NO_PAGE: &str = "there is no such page; / lists those that there are\n";

const NOT_ALL: &str =
    "debug pages tell of every model, and this key is for some only; use one without `models`\n";

const UNGUARDED: &str = "debug pages need a key; set PROXY_AUTH_ENABLED and PROXY_AUTH_TOKEN, or let the \
                         admin port listen on 127.0.0.1 only (--admin-listen)\n";

/// The running admin port; dropping it ends it.
pub struct Admin {
    /// Where it listens.
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Serves `pages` on `listener`.
pub fn start(listener: TcpListener, pages: Pages) -> io::Result<Admin> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let address = listener.local_addr()?;
    let router = Router::new()
        .route("/", get(index))
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/debug/config", get(config))
        .route("/debug/models", get(models))
        .fallback(|| async { (StatusCode::NOT_FOUND, NO_PAGE) })
        .layer(middleware::from_fn_with_state(pages.guard.clone(), guarded))
        .with_state(pages);
    let task = tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            error!(%error, "the admin port ended");
        }
    });
    Ok(Admin { address, task })
}

/// Whatever is asked of the port: pages to come are guarded as well.
async fn guarded(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    match guard.refusal(request.headers()) {
        Some(refusal) => refusal,
        None => next.run(request).await,
    }
}

async fn index() -> Html<&'static str> {
    Html(INDEX)
}

async fn ready(State(pages): State<Pages>) -> Response {
    let (status, word) = pages.lifecycle.phase().readiness();
    (StatusCode::from_u16(status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE), word).into_response()
}

async fn metrics(State(pages): State<Pages>) -> Response {
    (pages.refresh)();
    match pages.metrics.page() {
        Ok(page) => ([(CONTENT_TYPE, METRICS_TYPE)], page).into_response(),
        Err(problem) => {
            error!(error = %problem, "the metrics cannot be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

async fn config(State(pages): State<Pages>, headers: HeaderMap) -> Response {
    let refusal = pages.guard.debug_refusal(&headers);
    refusal.unwrap_or_else(|| Json(Shown::clone(&pages.settings)).into_response())
}

async fn models(State(pages): State<Pages>, headers: HeaderMap) -> Response {
    let refusal = pages.guard.debug_refusal(&headers);
    refusal.unwrap_or_else(|| Json((pages.models)()).into_response())
}
