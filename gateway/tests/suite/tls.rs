//! TLS to clients: HTTP/1.1 and HTTP/2 over it, and certificates that are replaced while it serves.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use flexinfer_gateway::tls::TlsFiles;
use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::h2_client::{End, H2Client, Upload};
use flexinfer_testkit::origin::{Action, Origin};
use flexinfer_testkit::{TempDir, eventually, eventually_async};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::world::{BOUND, World, model};

const CHAT: &str = "/v1/chat/completions";
const ASK: &[u8] = br#"{"model":"m"}"#;
const NAME: &str = "gateway.example";

/// A certificate for the gateway's name, and its key.
struct Issued {
    certificate: CertificateDer<'static>,
    pem: String,
    key: String,
}

fn issue() -> Issued {
    let key = KeyPair::generate().unwrap();
    let parameters = CertificateParams::new(vec![NAME.to_owned()]).unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    let (pem, key) = (certificate.pem(), key.serialize_pem());
    Issued { certificate: certificate.into(), pem, key }
}

struct Folder {
    _folder: TempDir,
    files: TlsFiles,
}

impl Folder {
    fn of(issued: &Issued) -> Self {
        let folder = flexinfer_testkit::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let files = TlsFiles { certificate: at("tls.crt"), key: at("tls.key") };
        let folder = Self { _folder: folder, files };
        folder.write(&issued.pem, &issued.key);
        folder
    }

    fn write(&self, certificate: &str, key: &str) {
        fs::write(&self.files.certificate, certificate).unwrap();
        fs::write(&self.files.key, key).unwrap();
    }
}

/// Connects as a client that trusts `issued` alone and offers `protocols`.
async fn connect(
    address: SocketAddr,
    issued: &Issued,
    protocols: &[&str],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(issued.certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    let socket = TcpStream::connect(address).await?;
    let name = ServerName::try_from(NAME).unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, socket).await
}

async fn http1(world: &World, issued: &Issued) -> Client<TlsStream<TcpStream>> {
    Client::over(connect(world.address, issued, &["http/1.1"]).await.unwrap())
}

async fn http2(world: &World, issued: &Issued) -> H2Client {
    let stream = connect(world.address, issued, &["h2", "http/1.1"]).await.unwrap();
    H2Client::over(stream, NAME).await.unwrap()
}

#[tokio::test]
async fn both_protocols_are_spoken_over_tls_as_clients_offer_them() {
    let (engine, issued) = (Origin::answering("{}").await.unwrap(), issue());
    let folder = Folder::of(&issued);
    let world = World::secured(engine.address, vec![model("m", None)], &folder.files);
    for (offered, agreed) in [
        (&["h2", "http/1.1"][..], Some("h2")),
        (&["http/1.1"][..], Some("http/1.1")),
        (&["http/1.0"][..], Some("http/1.0")),
        (&[][..], None),
    ] {
        let stream = connect(world.address, &issued, offered).await.unwrap();
        let protocol = stream.get_ref().1.alpn_protocol();
        assert_eq!(protocol, agreed.map(str::as_bytes), "{offered:?}");
    }
    assert!(connect(world.address, &issued, &["spdy/3"]).await.is_err());
    let mut client = http1(&world, &issued).await;
    for _ in 0..2 {
        client.post(CHAT, ASK).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 200);
    }
    let mut client = http2(&world, &issued).await;
    for _ in 0..2 {
        assert_eq!(client.request(&Upload::post(CHAT, ASK)).await.unwrap().status, 200);
    }
    assert_eq!(engine.requests().len(), 4);
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn long_bodies_arrive_whole_over_tls() {
    let (engine, issued) = (Origin::answering("{}").await.unwrap(), issue());
    let folder = Folder::of(&issued);
    let world = World::secured(engine.address, vec![model("m", None)], &folder.files);
    let body = format!(r#"{{"model":"m","prompt":"{}"}}"#, "0123456789".repeat(400_000));
    let mut client = http1(&world, &issued).await;
    client.post(CHAT, body.as_bytes()).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    let mut client = http2(&world, &issued).await;
    let upload =
        Upload { with_length: false, end: End::Apart, ..Upload::post(CHAT, body.as_bytes()) };
    assert_eq!(client.request(&upload).await.unwrap().status, 200);
    assert!(engine.requests().iter().all(|seen| seen.complete && seen.body == body.as_bytes()));
    assert_eq!(engine.requests().len(), 2);
}

#[tokio::test]
async fn each_event_leaves_before_the_next_one_comes_over_tls_too() {
    let next = Arc::new(Notify::new());
    let signal = Arc::clone(&next);
    let head =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let engine = Origin::start(move |_| {
        let event = || Action::Write(b"9\r\ndata: 1\n\n\r\n".to_vec());
        let wait = || Action::Wait(Arc::clone(&signal));
        vec![
            Action::Write(head.to_vec()),
            event(),
            wait(),
            event(),
            wait(),
            Action::Write(b"0\r\n\r\n".to_vec()),
        ]
    })
    .await
    .unwrap();
    let issued = issue();
    let folder = Folder::of(&issued);
    let world = World::secured(engine.address, vec![model("m", None)], &folder.files);
    let ask = br#"{"model":"m","stream":true}"#;
    let mut client = http1(&world, &issued).await;
    client.post(CHAT, ask).await.unwrap();
    assert_eq!(client.head().await.unwrap().status(), 200);
    for _ in 0..2 {
        assert_eq!(client.chunk().await.unwrap().expect("an event"), b"data: 1\n\n");
        next.notify_one();
    }
    assert_eq!(client.chunk().await.unwrap(), None);
    let mut client = http2(&world, &issued).await;
    let mut pending = client.begin(&Upload::post(CHAT, ask)).await.unwrap();
    pending.send(ask, 1000, Some(End::WithLastBytes)).await.unwrap();
    let (_, mut streamed) = pending.head().await.unwrap();
    for _ in 0..2 {
        assert_eq!(streamed.frame().await.unwrap().expect("an event"), b"data: 1\n\n".as_slice());
        next.notify_one();
    }
    assert_eq!(streamed.frame().await.unwrap().unwrap_or_default().len(), 0);
}

#[tokio::test]
async fn a_client_that_leaves_over_tls_waits_no_more() {
    let (engine, issued) = (Origin::answering("{}").await.unwrap(), issue());
    let folder = Folder::of(&issued);
    let world = World::secured(engine.address, vec![model("m", None)], &folder.files);
    world.desk.close();
    let mut client = http1(&world, &issued).await;
    client.post(CHAT, ASK).await.unwrap();
    assert!(eventually(BOUND, || world.desk.waiting() == 1).await);
    drop(client);
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn a_new_certificate_counts_for_the_next_connection_and_a_faulty_one_never() {
    let engine = Origin::answering("{}").await.unwrap();
    let [first, second, third] = [(); 3].map(|()| issue());
    let folder = Folder::of(&first);
    let world = World::secured(engine.address, vec![model("m", None)], &folder.files);
    let counted = |line: &str| {
        let page = String::from_utf8(world.metrics.page().unwrap()).unwrap();
        page.lines().any(|found| found.starts_with(line))
    };
    assert!(counted("flexinfer_proxy_tls_certificate_expiry_timestamp_seconds "));
    let mut kept = http1(&world, &first).await;

    folder.write(&second.pem, &second.key);
    let shown = |issued| async move { connect(world.address, issued, &["h2"]).await.is_ok() };
    assert!(eventually_async(BOUND, || shown(&second)).await, "the new one is never shown");
    assert!(!shown(&first).await, "the old one is still shown");
    kept.post(CHAT, ASK).await.unwrap();
    assert_eq!(kept.answer().await.unwrap().status(), 200, "a connection from before goes on");

    // Half of the change has happened, and then a file that is being written.
    let failed = "flexinfer_proxy_tls_certificate_reloads_total{result=\"failure\"}";
    folder.write(&third.pem, &second.key);
    assert!(eventually(BOUND, || counted(failed)).await, "nothing was said of the mismatch");
    assert!(shown(&second).await, "a pair that does not fit replaced one that does");
    folder.write(&third.pem[..third.pem.len() / 2], &third.key);
    let twice = format!("{failed} 2");
    assert!(eventually(BOUND, || counted(&twice)).await, "nothing was said of half a file");
    assert!(shown(&second).await);
    folder.write(&third.pem, &third.key);
    assert!(eventually_async(BOUND, || shown(&third)).await, "the mended pair does not count");
}

#[tokio::test]
async fn plain_http_is_told_to_come_by_https() {
    let (engine, issued) = (Origin::answering("{}").await.unwrap(), issue());
    let folder = Folder::of(&issued);
    let world = World::secured(engine.address, vec![model("m", None)], &folder.files);
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&request("POST", CHAT, &[], ASK)).await.unwrap();
    let answer = client.answer().await.unwrap();
    assert_eq!(answer.status(), 400);
    assert_eq!(answer.json()["error"]["code"], "https_required");
    client.finish_sending().await.unwrap();
    assert_eq!(client.rest(BOUND).await.expect("it is closed"), b"");
    assert_eq!(engine.connections(), 0);
}

#[tokio::test]
async fn a_gateway_that_stops_finishes_what_it_has_begun_over_tls() {
    let (engine, issued) = (Origin::answering("{}").await.unwrap(), issue());
    let folder = Folder::of(&issued);
    let world = World::secured(engine.address, vec![model("m", None)], &folder.files);
    world.desk.close();
    let (mut one, mut two) = (http1(&world, &issued).await, http2(&world, &issued).await);
    one.post(CHAT, ASK).await.unwrap();
    let mut pending = two.begin(&Upload::post(CHAT, ASK)).await.unwrap();
    pending.send(ASK, 1000, Some(End::WithLastBytes)).await.unwrap();
    let World { desk, gateway, .. } = world;
    assert!(eventually(BOUND, || desk.waiting() == 2).await);
    let patience = flexinfer_gateway::server::Patience {
        drain_delay: Duration::ZERO,
        in_flight: BOUND,
        first_request: Duration::ZERO,
    };
    let stopping = tokio::spawn(gateway.stop(patience));
    desk.open();
    assert_eq!(one.answer().await.unwrap().status(), 200);
    assert_eq!(pending.answer().await.unwrap().status, 200);
    assert!(stopping.await.unwrap(), "something was left in flight");
}
