//! The server over real TLS, as an API server speaks to it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use flexinfer_core::planning::objects::Settings;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::edition::{Edition, provider};
use super::server::{Shown, serve};

const NAME: &str = "flexinfer-webhooks.models.svc";
const LIFE: Duration = Duration::from_secs(3600);

fn edition() -> Edition {
    Edition::new(NAME, LIFE, SystemTime::now()).unwrap()
}

struct Server {
    address: SocketAddr,
    shown: Arc<Shown>,
    _tasks: JoinSet<()>,
}

impl Server {
    async fn start() -> Self {
        let (mut tasks, shown) = (JoinSet::new(), Arc::new(Shown::default()));
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let address =
            serve(&mut tasks, any, Arc::clone(&shown), Settings::default()).await.unwrap();
        Self { address, shown, _tasks: tasks }
    }

    /// What is answered to one who trusts `trusted` and asks at `path`; `None` where no conversation comes about.
    async fn ask(&self, trusted: &Edition, path: &str, body: &Value) -> Option<(u16, Value)> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(trusted.authority.as_bytes()).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(provider());
        let mut tls = builder
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        // As API servers do.
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let stream = TcpStream::connect(self.address).await.unwrap();
        let connector = TlsConnector::from(Arc::new(tls));
        let stream = connector.connect(ServerName::try_from(NAME).unwrap(), stream).await.ok()?;
        let handshake =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        let request = Request::post(format!("https://{NAME}{path}"))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body.to_string())))
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        Some((status, serde_json::from_slice(&body).unwrap_or_default()))
    }
}

fn review(spec: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "kind": { "group": "inference.flexinfer.ai", "version": "v1alpha2", "kind": "Model" },
            "operation": "CREATE",
            "object": {
                "apiVersion": "inference.flexinfer.ai/v1alpha2",
                "kind": "Model",
                "metadata": { "name": "m" },
                "spec": spec,
            },
        },
    })
}

#[tokio::test]
async fn both_questions_are_answered() {
    let (server, edition) = (Server::start().await, edition());
    server.shown.show(edition.certified().unwrap());
    let faulty = review(&json!({ "backend": "simulatr" }));
    let (status, answer) = server.ask(&edition, "/validate", &faulty).await.unwrap();
    assert_eq!((status, &answer["response"]["allowed"]), (200, &json!(false)));
    let shares = review(&json!({ "backend": "simulator", "gpu": { "shared": "gpu0" } }));
    let (_, answer) = server.ask(&edition, "/defaults", &shares).await.unwrap();
    assert_eq!(answer["response"]["patchType"], "JSONPatch");
    let (status, _) = server.ask(&edition, "/validate", &json!({})).await.unwrap();
    assert_eq!(status, 400);
}

#[tokio::test]
async fn nobody_is_answered_before_there_is_a_certificate() {
    let server = Server::start().await;
    assert!(server.ask(&edition(), "/validate", &json!({})).await.is_none());
}

#[tokio::test]
async fn another_certificate_is_shown_without_a_new_start() {
    let (server, first, second) = (Server::start().await, edition(), edition());
    let question = review(&json!({ "backend": "simulator" }));
    server.shown.show(first.certified().unwrap());
    assert!(server.ask(&first, "/validate", &question).await.is_some());
    server.shown.show(second.certified().unwrap());
    assert!(server.ask(&second, "/validate", &question).await.is_some());
    assert!(server.ask(&first, "/validate", &question).await.is_none());
}

#[tokio::test]
async fn one_who_says_nothing_keeps_nobody_waiting() {
    let (server, edition) = (Server::start().await, edition());
    server.shown.show(edition.certified().unwrap());
    let _silent: Vec<TcpStream> = {
        let mut silent = Vec::new();
        for _ in 0..20 {
            silent.push(TcpStream::connect(server.address).await.unwrap());
        }
        silent
    };
    assert!(
        server
            .ask(&edition, "/validate", &review(&json!({ "backend": "simulator" })))
            .await
            .is_some()
    );
}
