//! Engines that speak HTTP/2: whatever is sent over it arrives as over HTTP/1.1, and what they refuse goes
//! elsewhere.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use flexinfer_core::effective::EngineProtocol;
use flexinfer_core::fleet::Served;
use flexinfer_testkit::client::{Client, chunked_request, request};
use flexinfer_testkit::eventually;
use flexinfer_testkit::h2_client::{End, H2Client, Upload};
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::world::{BOUND, World, model};

const CHAT: &str = "/v1/chat/completions";
const ASK: &[u8] = br#"{"model":"m"}"#;

/// What an engine does with a request.
#[derive(Clone)]
pub(crate) enum Script {
    /// Answers once it has read all of it.
    Answer,
    /// Sends an event, and another one when it is told to; then ends, with trailers.
    Stream(Arc<Notify>),
    /// Says before it reads that it does not take it.
    Refuse,
    /// Gives up once it has read all of it.
    GiveUp,
}

#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) authority: Option<String>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    connection: usize,
}

struct Engine {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    _serving: JoinSet<()>,
}

impl Engine {
    /// An engine that speaks nothing but HTTP/2 and does `script` with each request.
    async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let mut serving = JoinSet::new();
        let kept = Arc::clone(&seen);
        serving.spawn(async move {
            for connection in 0.. {
                let (socket, _) = listener.accept().await.unwrap();
                tokio::spawn(converse(socket, connection, script.clone(), Arc::clone(&kept)));
            }
        });
        Self { address, seen, _serving: serving }
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().clone()
    }
}

pub(crate) async fn converse(
    socket: impl AsyncRead + AsyncWrite + Unpin,
    connection: usize,
    script: Script,
    seen: Arc<Mutex<Vec<Seen>>>,
) {
    let Ok(mut accepted) = h2::server::handshake(socket).await else { return };
    while let Some(Ok((request, answer))) = accepted.accept().await {
        tokio::spawn(serve(request, answer, connection, script.clone(), Arc::clone(&seen)));
    }
}

async fn serve(
    request: Request<RecvStream>,
    mut answer: SendResponse<Bytes>,
    connection: usize,
    script: Script,
    seen: Arc<Mutex<Vec<Seen>>>,
) {
    let (head, mut stream) = request.into_parts();
    if matches!(script, Script::Refuse) {
        return answer.send_reset(Reason::REFUSED_STREAM);
    }
    let mut body = Vec::new();
    while let Some(Ok(piece)) = stream.data().await {
        stream.flow_control().release_capacity(piece.len()).unwrap();
        body.extend_from_slice(&piece);
    }
    seen.lock().push(Seen {
        path: head.uri.path().to_owned(),
        authority: head.uri.authority().map(ToString::to_string),
        headers: head.headers,
        body,
        connection,
    });
    match script {
        Script::GiveUp => answer.send_reset(Reason::INTERNAL_ERROR),
        Script::Stream(next) => {
            let head = Response::builder().header("content-type", "text/event-stream");
            let mut body = answer.send_response(head.body(()).unwrap(), false).unwrap();
            body.send_data(Bytes::from_static(b"data: 1\n\n"), false).unwrap();
            next.notified().await;
            body.send_data(Bytes::from_static(b"data: [DONE]\n\n"), false).unwrap();
            let mut trailers = HeaderMap::new();
            trailers.insert("x-checksum", "1".parse().unwrap());
            body.send_trailers(trailers).unwrap();
        }
        Script::Answer | Script::Refuse => {
            let head = Response::builder().header("content-type", "application/json");
            let mut body = answer.send_response(head.body(()).unwrap(), false).unwrap();
            body.send_data(Bytes::from_static(b"{}"), true).unwrap();
        }
    }
}

fn over_http2() -> Served {
    let mut model = model("m", Some("its-own-name"));
    model.effective.spoken.protocol = EngineProtocol::H2c;
    model
}

#[tokio::test]
async fn bodies_of_every_kind_arrive_whole_over_http2() {
    let engine = Engine::start(Script::Answer).await;
    let world = World::new(engine.address, vec![over_http2()]);
    let long = "x".repeat(3_000_000);
    let body = |name: &str| format!(r#"{{"model":"{name}","prompt":"{long}"}}"#).into_bytes();
    let form = |name: &str| {
        let part = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n";
        format!("{part}{name}\r\n--b\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n{long}\r\n--b--\r\n")
            .into_bytes()
    };
    let form_type = [("Content-Type", "multipart/form-data; boundary=b")];
    let transcriptions = "/v1/audio/transcriptions";
    let mut client = Client::connect(world.address).await.unwrap();
    for bytes in [
        request("POST", CHAT, &[], ASK),
        request("POST", CHAT, &[], &body("m")),
        chunked_request("POST", CHAT, &[], &body("m"), &[1000, 1, 70_001]),
        request("POST", transcriptions, &form_type, &form("m")),
        request("GET", "/model/m/metrics", &[], b""),
    ] {
        client.send(&bytes).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 200);
    }
    let mut client = H2Client::connect(world.address).await.unwrap();
    let sent = body("m");
    let upload = Upload { with_length: false, end: End::Apart, ..Upload::post(CHAT, &sent) };
    assert_eq!(client.request(&upload).await.unwrap().status, 200);
    let own = |body: &dyn Fn(&str) -> Vec<u8>| body("its-own-name");
    let expected = [
        br#"{"model":"its-own-name"}"#.to_vec(),
        own(&body),
        own(&body),
        own(&form),
        Vec::new(),
        own(&body),
    ];
    let seen = engine.seen();
    assert_eq!(seen.len(), expected.len());
    for (number, (seen, expected)) in seen.iter().zip(&expected).enumerate() {
        assert!(seen.body == *expected, "request {number} was changed on its way");
        assert_eq!(seen.authority.as_deref(), Some(engine.address.to_string().as_str()));
        assert!(!seen.headers.contains_key("transfer-encoding"));
    }
    assert_eq!(seen[4].path, "/metrics");
    // The long form has one of its own, since it can be sent once only; what comes by HTTP/2 is on no lane, and
    // shares none with it.
    let shared = seen.iter().filter(|seen| seen.connection == 0).count();
    assert_eq!(shared, 4, "each request had its own connection");
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn each_event_of_an_engine_that_speaks_http2_is_passed_on_at_once() {
    let next = Arc::new(Notify::new());
    let engine = Engine::start(Script::Stream(Arc::clone(&next))).await;
    let world = World::new(engine.address, vec![over_http2()]);
    let ask = br#"{"model":"m","stream":true}"#;
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, ask).await.unwrap();
    let head = client.head().await.unwrap();
    assert_eq!((head.status(), head.header("x-accel-buffering")), (200, Some("no")));
    assert_eq!(client.chunk().await.unwrap().expect("an event"), b"data: 1\n\n");
    next.notify_one();
    assert_eq!(client.chunk().await.unwrap().expect("an event"), b"data: [DONE]\n\n");
    // Trailers end here: of HTTP/1.1's clients hardly any reads them.
    assert_eq!(client.chunk().await.unwrap(), None);
    next.notify_one();
    let mut client = H2Client::connect(world.address).await.unwrap();
    let answer = client.request(&Upload::post(CHAT, ask)).await.unwrap();
    assert_eq!(answer.body, b"data: 1\n\ndata: [DONE]\n\n");
    assert_eq!(answer.trailers.expect("trailers")["x-checksum"], "1");
}

#[tokio::test]
async fn a_websocket_to_an_engine_that_speaks_nothing_but_http2_is_refused_with_the_reason() {
    let engine = Engine::start(Script::Answer).await;
    let world = World::new(engine.address, vec![over_http2()]);
    let mut client = Client::connect(world.address).await.unwrap();
    let handshake = "GET /v1/realtime?model=m HTTP/1.1\r\nHost: g\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n";
    client.send(handshake.as_bytes()).await.unwrap();
    let answer = client.answer_to("GET").await.unwrap();
    assert_eq!((answer.status(), answer.head.header("upgrade")), (502, None));
    assert_eq!(answer.json()["error"]["code"], "engine_protocol", "{}", answer.text());
    assert!(answer.text().contains("HTTP/1.1, by which WebSockets go"), "{}", answer.text());
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, ASK).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200, "everything else is served");
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn a_refused_stream_goes_to_another_engine() {
    let (refusing, spare) =
        (Engine::start(Script::Refuse).await, Engine::start(Script::Answer).await);
    let world = World::new(refusing.address, vec![over_http2()]);
    world.desk.set_spare(spare.address);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, ASK).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    assert_eq!(world.desk.rebooked(), 1);
    world.desk.set_spare(refusing.address);
    client.post(CHAT, ASK).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 502, "it was asked for ever");
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn what_an_engine_has_begun_is_not_tried_again_over_http2() {
    let (failing, spare) =
        (Engine::start(Script::GiveUp).await, Engine::start(Script::Answer).await);
    let world = World::new(failing.address, vec![over_http2()]);
    world.desk.set_spare(spare.address);
    for _ in 0..2 {
        let mut client = Client::connect(world.address).await.unwrap();
        client.post(CHAT, ASK).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 502);
    }
    assert_eq!((failing.seen().len(), spare.seen().len(), world.desk.rebooked()), (2, 0, 0));
}
