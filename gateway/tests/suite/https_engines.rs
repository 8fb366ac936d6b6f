//! Engines behind TLS: spoken to in what both sides agree on, and only if they are who they should be.

use std::net::SocketAddr;
use std::sync::Arc;

use flexinfer_core::effective::{EngineProtocol, Spoken};
use flexinfer_core::fleet::Served;
use flexinfer_gateway::rules::Rules;
use flexinfer_gateway::secrets::Secrets;
use flexinfer_gateway::tls::Trust;
use flexinfer_testkit::client::{Answer, Client, request};
use flexinfer_testkit::framing::Head;
use flexinfer_testkit::origin::answer;
use flexinfer_testkit::{TempDir, eventually};
use parking_lot::Mutex;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::adapters_on_demand;
use crate::http2_engines::{Script, Seen, converse};
use crate::world::{BOUND, Terms, World, model};

const CHAT: &str = "/v1/chat/completions";
const ASK: &[u8] = br#"{"model":"m"}"#;

/// An engine behind TLS that says of each request in which protocol it came, and to whom.
pub(crate) struct Engine {
    pub(crate) address: SocketAddr,
    /// The certificate of its authority.
    pub(crate) authority: std::path::PathBuf,
    _folder: TempDir,
    heads: Arc<Mutex<Vec<Head>>>,
    over_http2: Arc<Mutex<Vec<Seen>>>,
    _serving: JoinSet<()>,
}

impl Engine {
    /// An engine with a certificate for `localhost` that speaks `protocols`.
    pub(crate) async fn speaking(protocols: &[&str]) -> Self {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        let folder = flexinfer_testkit::tempdir().unwrap();
        let authority = folder.path().join("ca.crt");
        std::fs::write(&authority, certificate.pem()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.into()], key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (heads, over_http2) = (Arc::default(), Arc::default());
        let mut serving = JoinSet::new();
        let (kept, streams) = (Arc::clone(&heads), Arc::clone(&over_http2));
        serving.spawn(async move {
            for connection in 0.. {
                let (socket, _) = listener.accept().await.unwrap();
                let Ok(secured) = acceptor.accept(socket).await else { continue };
                if secured.get_ref().1.alpn_protocol() == Some(b"h2") {
                    let seen = Arc::clone(&streams);
                    tokio::spawn(converse(secured, connection, Script::Answer, seen));
                } else {
                    tokio::spawn(http1(secured, Arc::clone(&kept)));
                }
            }
        });
        Self { address, authority, _folder: folder, heads, over_http2, _serving: serving }
    }

    /// How many requests came by HTTP/1.1 and by HTTP/2.
    fn seen(&self) -> (usize, usize) {
        (self.heads.lock().len(), self.over_http2.lock().len())
    }

    /// What was asked for, by either, and with which key.
    fn asked(&self) -> Vec<(String, Option<String>)> {
        let heads = self.heads.lock();
        let http1 = heads.iter().map(|head| {
            (head.target().to_owned(), head.header("authorization").map(str::to_owned))
        });
        let streams = self.over_http2.lock();
        let http2 = streams.iter().map(|seen| {
            let key = seen.headers.get("authorization").map(|key| key.to_str().unwrap().to_owned());
            (seen.path.clone(), key)
        });
        http1.chain(http2).collect()
    }

    fn host(&self) -> String {
        format!("localhost:{}", self.address.port())
    }
}

/// Serves requests with short bodies.
async fn http1(mut secured: TlsStream<TcpStream>, heads: Arc<Mutex<Vec<Head>>>) {
    let mut received = Vec::new();
    while secured.read_buf(&mut received).await.is_ok_and(|read| read > 0) {
        if let Ok(Some(head)) = Head::take(&mut received) {
            let length = head.header("content-length").map_or(0, |text| text.parse().unwrap());
            while received.len() < length {
                secured.read_buf(&mut received).await.unwrap();
            }
            received.drain(..length);
            heads.lock().push(head);
            secured.write_all(&answer(200, &[], b"{}")).await.unwrap();
        }
    }
}

fn spoken_to(protocol: EngineProtocol, name: &str) -> Served {
    let mut model = model("m", None);
    model.effective.spoken = Spoken { protocol, tls_name: Some(name.to_owned()) };
    model
}

async fn ask(world: &World) -> Answer {
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, ASK).await.unwrap();
    client.answer().await.unwrap()
}

#[tokio::test]
async fn http2_is_spoken_to_engines_that_offer_it_and_http1_to_others() {
    for (offered, over_http2) in
        [(&["h2", "http/1.1"][..], true), (&["http/1.1"], false), (&[], false)]
    {
        let engine = Engine::speaking(offered).await;
        let models = vec![spoken_to(EngineProtocol::Alpn, "localhost")];
        let world = World::trusting(engine.address, models, &engine.authority);
        for _ in 0..2 {
            let answer = ask(&world).await;
            assert_eq!((answer.status(), answer.text().as_str()), (200, "{}"), "{offered:?}");
        }
        assert_eq!(engine.seen(), if over_http2 { (0, 2) } else { (2, 0) }, "{offered:?}");
        let (heads, streams) = (engine.heads.lock().clone(), engine.over_http2.lock().clone());
        assert!(heads.iter().all(|head| head.header("host") == Some(engine.host().as_str())));
        assert!(streams.iter().all(|seen| seen.authority == Some(engine.host())));
        assert!(streams.iter().all(|seen| seen.body == ASK));
        assert!(eventually(BOUND, || world.at_rest()).await);
    }
}

#[tokio::test]
async fn a_model_says_when_one_protocol_is_insisted_on() {
    let both = Engine::speaking(&["h2", "http/1.1"]).await;
    let models = vec![spoken_to(EngineProtocol::Http1, "localhost")];
    let world = World::trusting(both.address, models, &both.authority);
    assert_eq!(ask(&world).await.status(), 200);
    assert_eq!(both.seen(), (1, 0));
    // Without ALPN, HTTP/1.1 is what is understood.
    let silent = Engine::speaking(&[]).await;
    let models = vec![spoken_to(EngineProtocol::H2, "localhost")];
    let world = World::trusting(silent.address, models, &silent.authority);
    let answer = ask(&world).await;
    assert_eq!(answer.status(), 502);
    assert_eq!(answer.json()["error"]["code"], "engine_protocol", "{}", answer.text());
    assert_eq!(silent.seen(), (0, 0));
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn an_engine_that_refuses_every_protocol_offered_is_told_of_and_not_doubted() {
    let handshake = "GET /v1/realtime?model=m HTTP/1.1\r\nHost: g\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n";
    let chat = request("POST", CHAT, &[], ASK);
    for (offered, wanted, sent, missing) in [
        (["http/1.1"], EngineProtocol::H2, chat.as_slice(), "config.engineProtocol: h2"),
        (["h2"], EngineProtocol::Http1, &chat, "config.engineProtocol: http1"),
        (["h2"], EngineProtocol::Alpn, handshake.as_bytes(), "by which WebSockets go"),
        (["h2"], EngineProtocol::H2, handshake.as_bytes(), "by which WebSockets go"),
        (["something"], EngineProtocol::Alpn, &chat, "HTTP/1.1 or HTTP/2"),
    ] {
        let engine = Engine::speaking(&offered).await;
        let models = vec![spoken_to(wanted, "localhost")];
        let world = World::trusting(engine.address, models, &engine.authority);
        let mut client = Client::connect(world.address).await.unwrap();
        client.send(sent).await.unwrap();
        let answer = client.answer().await.unwrap();
        assert_eq!(answer.status(), 502, "{offered:?}, {wanted:?}");
        assert_eq!(answer.json()["error"]["code"], "engine_protocol", "{}", answer.text());
        assert!(answer.text().contains(missing), "{}", answer.text());
        assert_eq!(world.desk.rebooked(), 0, "it was taken for one that cannot be reached");
        assert!(eventually(BOUND, || world.at_rest()).await);
    }
}

#[tokio::test]
async fn adapters_are_loaded_by_the_way_that_requests_go_with_the_engines_key() {
    for offered in ["h2", "http/1.1"] {
        let engine = Engine::speaking(&[offered]).await;
        let folder = flexinfer_testkit::tempdir().unwrap();
        std::fs::write(folder.path().join("engine"), "sk-1").unwrap();
        let secrets = Secrets::new(Some(folder.path().to_path_buf()))
            .trusting(Trust::new(Some(&engine.authority)).unwrap());
        let rules = Rules { secrets: Arc::new(secrets), ..Rules::default() };
        let mut base = model("base", None);
        let tls_name = Some("localhost".to_owned());
        base.effective.spoken = Spoken { protocol: EngineProtocol::Alpn, tls_name };
        base.effective.api_key_secret = Some("engine".to_owned());
        let fleet = adapters_on_demand::fleet_of(base);
        let world = World::serve(engine.address, fleet, Terms { rules, ..Terms::default() });
        let answer = adapters_on_demand::ask(&world, "sql").await.unwrap();
        assert_eq!(answer.status(), 200, "{offered}: {}", answer.text());
        let seen: Vec<_> = engine.asked();
        let key = Some("Bearer sk-1".to_owned());
        let expected = [adapters_on_demand::LOAD, CHAT].map(|path| (path.to_owned(), key.clone()));
        assert_eq!(seen, expected, "{offered}");
    }
}

#[tokio::test]
async fn an_engine_that_cannot_prove_its_name_gets_no_request() {
    let engine = Engine::speaking(&["h2", "http/1.1"]).await;
    let stranger = Engine::speaking(&[]).await;
    for (name, authority) in
        [("another.example", &engine.authority), ("localhost", &stranger.authority)]
    {
        let models = vec![spoken_to(EngineProtocol::Alpn, name)];
        let world = World::trusting(engine.address, models, authority);
        let answer = ask(&world).await;
        assert_eq!(answer.status(), 502, "{name}: {}", answer.text());
        assert_eq!(engine.seen(), (0, 0), "{name}");
    }
}
