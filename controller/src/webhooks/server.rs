//! The server that the API server asks, over TLS with whichever certificate is in use at the moment.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use arc_swap::ArcSwapOption;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Json, Response};
use axum::routing::post;
use flexinfer_core::admission::{BadReview, set_defaults, validate};
use flexinfer_core::planning::objects::Settings;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::edition::provider;

/// An object and what it was before, each as large as the API server stores any.
const LONGEST: usize = 8 << 20;

/// Whoever has not said what it wants by then wants nothing.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The certificate in use, which changes while the server goes on.
#[derive(Debug, Default)]
pub(super) struct Shown(ArcSwapOption<CertifiedKey>);

impl Shown {
    /// From now on this one.
    pub(super) fn show(&self, certified: CertifiedKey) {
        self.0.store(Some(Arc::new(certified)));
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.load_full()
    }
}

/// Answers on `address` with what `shown` shows; the task ends when the set is dropped.
pub(super) async fn serve(
    tasks: &mut JoinSet<()>,
    address: SocketAddr,
    shown: Arc<Shown>,
    settings: Settings,
) -> anyhow::Result<SocketAddr> {
    let builder =
        ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let mut tls =
        builder.context("TLS cannot be set up")?.with_no_client_auth().with_cert_resolver(shown);
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let listener = TcpListener::bind(address).await;
    let listener =
        listener.with_context(|| format!("cannot listen on {address} for the API server"))?;
    let address = listener.local_addr()?;
    tasks.spawn(accept(listener, TlsAcceptor::from(Arc::new(tls)), router(settings)));
    Ok(address)
}

fn router(settings: Settings) -> Router {
    Router::new()
        .route("/validate", post(validation))
        .route("/defaults", post(defaults))
        .layer(DefaultBodyLimit::max(LONGEST))
        .with_state(Arc::new(settings))
}

async fn validation(State(settings): State<Arc<Settings>>, body: Bytes) -> Response {
    answer(validate(&body, &settings))
}

async fn defaults(body: Bytes) -> Response {
    answer(set_defaults(&body))
}

fn answer(answered: Result<Value, BadReview>) -> Response {
    match answered {
        Ok(review) => Json(review).into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")).into_response(),
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, router: Router) {
    let mut connections = JoinSet::new();
    loop {
        // Ended ones are let go of here.
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(converse(stream, tls.clone(), router.clone()));
            }
            // Too many files are open, say: others are served meanwhile.
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn converse(stream: TcpStream, tls: TlsAcceptor, router: Router) {
    match timeout(HANDSHAKE, tls.accept(stream)).await {
        Ok(Ok(stream)) => {
            let service = TowerToHyperService::new(router);
            let connection = Builder::new(TokioExecutor::new());
            let served = connection.serve_connection(TokioIo::new(stream), service).await;
            if let Err(error) = served {
                tracing::debug!(error, "a conversation ended early");
            }
        }
        // An API server that does not trust the certificate yet says so in its own log.
        Ok(Err(error)) => tracing::debug!(%error, "no handshake"),
        Err(_) => tracing::debug!("no handshake in time"),
    }
}
