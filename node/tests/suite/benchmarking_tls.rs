//! `bench` through a gateway whose certificate an authority of one's own has signed.

use std::path::PathBuf;
use std::sync::Arc;

use flexinfer_testkit::simulator::{Running, Settings, Simulator};
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::world::{program, text};

/// An engine, and TLS in front of it.
struct Secured {
    engine: Running,
    url: String,
    /// The certificate of its authority.
    authority: PathBuf,
    folder: tempfile::TempDir,
    _serving: JoinSet<()>,
}

impl Secured {
    async fn start() -> Self {
        let engine = Simulator::start(Settings::default()).await.unwrap();
        engine.ready().await.unwrap();
        let behind = engine.url().trim_start_matches("http://").trim_end_matches('/').to_owned();
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let authority = folder.path().join("ca.crt");
        std::fs::write(&authority, certificate.pem()).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.into()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (acceptor, behind) = (acceptor.clone(), behind.clone());
                tokio::spawn(async move {
                    let mut secured = acceptor.accept(socket).await.ok()?;
                    let mut engine = TcpStream::connect(behind).await.ok()?;
                    copy_bidirectional(&mut secured, &mut engine).await.ok()
                });
            }
        });
        Self { engine, url, authority, folder, _serving: serving }
    }

    /// What became of a short benchmark that believes the authorities in this file.
    async fn bench(&self, ca: Option<PathBuf>) -> (bool, String) {
        let mut command = program();
        command.args([
            "bench",
            "--model",
            "simulated",
            "--min-duration",
            "0s",
            "--iterations",
            "1",
        ]);
        command.args([
            "--warmup-iterations",
            "0",
            "--cold-start-timeout",
            "2s",
            "--url",
            &self.url,
        ]);
        command.envs(ca.map(|file| ("PROXY_CA", file)));
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        (output.status.success(), text(&output))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_with_an_authority_of_ones_own_is_measured_once_that_is_named() {
    let gateway = Secured::start().await;
    let (done, said) = gateway.bench(None).await;
    assert!(!done && gateway.engine.requests().is_empty(), "whom nobody vouches for: {said}");
    let (done, said) = gateway.bench(Some(gateway.authority.clone())).await;
    assert!(done && !gateway.engine.requests().is_empty(), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn authorities_that_are_none_are_named() {
    let gateway = Secured::start().await;
    let empty = gateway.folder.path().join("empty.crt");
    std::fs::write(&empty, "no certificate").unwrap();
    for file in [empty, gateway.folder.path().join("missing.crt")] {
        let (done, said) = gateway.bench(Some(file.clone())).await;
        assert!(!done && said.contains("--ca") && said.contains(file.to_str().unwrap()), "{said}");
    }
}
