//! Connections that become something else than HTTP.

use std::time::Duration;

use flexinfer_core::fleet::Served;
use flexinfer_gateway::parts::Limits;
use flexinfer_testkit::at_head::AtHead;
use flexinfer_testkit::client::Client;
use flexinfer_testkit::eventually;
use flexinfer_testkit::h2_client::{H2Client, Upload};
use flexinfer_testkit::origin::{Action, Origin};
use futures::future::join_all;
use tokio::time::timeout;

use crate::callers::ask;
use crate::world::{BOUND, World, limits, model};

const HANDSHAKE: &str = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// What a request for a WebSocket has at least.
pub(crate) const UPGRADE: [(&str, &str); 2] = [("Upgrade", "websocket"), ("Connection", "Upgrade")];

#[tokio::test]
async fn a_websocket_passes_in_both_directions_and_holds_its_slot() {
    let engine = AtHead::echo().await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    for path in ["/v1/realtime?model=m", "/model/m/anything?a=b"] {
        let mut client = Client::connect(world.address).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: g\r\n{HANDSHAKE}\r\n");
        client.send(head.as_bytes()).await.unwrap();
        assert_eq!(client.head().await.unwrap().status(), 101, "{path}");
        let mut sent = Vec::new();
        for message in ["one", "another", "\u{1}\u{2}"] {
            client.send(message.as_bytes()).await.unwrap();
            sent.extend_from_slice(message.as_bytes());
            while client.unread().len() < sent.len() {
                let ended = client.rest(BOUND / 200).await;
                assert_eq!(ended, None, "{path}: it ended");
            }
            assert_eq!(client.unread(), sent, "{path}");
        }
        assert_eq!(world.desk.held(), 1);
        drop(client);
        assert!(eventually(BOUND, || world.at_rest()).await, "{path}: the slot comes back");
    }
}

fn handshake(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: g\r\n{HANDSHAKE}\r\n")
}

/// What can only be spoken over a WebSocket is not asked of an engine otherwise, nor is one woken to say so.
#[tokio::test]
async fn who_asks_for_no_websocket_where_only_one_is_spoken_is_told_so_and_wakes_nobody() {
    let engine = Origin::answering("{}").await.unwrap();
    let models = ["simulator", "comfyui", "command"].map(|backend| of_backend(backend, backend));
    let world = World::new(engine.address, models.to_vec());
    let other = [("Upgrade", "h2c"), ("Connection", "Upgrade")];
    for path in [
        "/v1/realtime?model=simulator",
        "/model/command/v1/realtime",
        "/model/simulator/ws?clientId=c",
        "/model/comfyui/api/ws",
    ] {
        for headers in [&[][..], &other] {
            let told = ask(&world, "GET", path, headers, b"").await;
            assert_eq!(told.status(), 426, "{path}: {}", told.text());
            assert_eq!(told.head.header("upgrade"), Some("websocket"), "{path}");
            let code = told.head.header("x-flexinfer-error-code");
            assert_eq!(code, Some("upgrade_required"), "{path}");
            assert!(told.json().pointer("/error/message").is_some(), "{path}: {}", told.text());
        }
        let mut over_http2 = H2Client::connect(world.address).await.unwrap();
        let get =
            Upload { method: "GET", headers: &[], with_length: false, ..Upload::post(path, b"") };
        let told = timeout(BOUND, over_http2.request(&get)).await.unwrap().unwrap();
        let code = told.headers.get("x-flexinfer-error-code").and_then(|code| code.to_str().ok());
        assert_eq!((told.status, code), (426, Some("upgrade_required")), "{path} over HTTP/2");
    }
    let head = ask(&world, "HEAD", "/model/comfyui/ws", &[], b"").await;
    assert_eq!(head.status(), 426);
    assert_eq!((world.desk.booked(), engine.requests().len()), (0, 0));
    let asked = ask(&world, "GET", "/model/comfyui/ws?clientId=c", &UPGRADE, b"").await;
    assert_eq!(asked.status(), 200, "whether it agrees, the engine says");
}

fn of_backend(name: &str, backend: &str) -> Served {
    Served::new(model(name, None).effective, backend, "", 0)
}

/// Paths as short as ComfyUI's may be something else with an engine that somebody brings along. Whose path it is comes
/// before what is spoken there.
#[tokio::test]
async fn what_a_path_means_to_its_model_is_known_before_a_websocket_is_asked_for() {
    let engine = Origin::answering("{}").await.unwrap();
    let models = ["external", "command", "llamacpp"].map(|backend| of_backend(backend, backend));
    let world = World::new(engine.address, models.to_vec());
    for (path, status, code) in [
        ("/model/external/ws", 200, None),
        ("/model/command/api/ws?a=b", 200, None),
        ("/model/llamacpp/ws", 404, Some("api_not_served")),
        ("/model/llamacpp/v1/realtime", 404, Some("api_not_served")),
        ("/model/nobody/ws", 404, Some("model_not_found")),
        ("/v1/realtime?model=nobody", 404, Some("model_not_found")),
    ] {
        let answer = ask(&world, "GET", path, &[], b"").await;
        let told = (answer.status(), answer.head.header("x-flexinfer-error-code"));
        assert_eq!(told, (status, code), "{path}: {}", answer.text());
    }
    assert_eq!(engine.requests().len(), 2);
}

#[tokio::test]
async fn a_websocket_on_which_nothing_is_said_is_kept() {
    let engine = AtHead::echo().await.unwrap();
    // Within the first of them the handshake has to be answered too.
    let short = Duration::from_secs(2);
    let kept = [(short, short), (short, 2 * short), (2 * short, short)].map(
        async |(first_byte, silence)| {
            let limits = Limits { first_byte, silence, ..limits() };
            let world = World::with(engine.address, vec![model("m", None)], limits, 1 << 30);
            let mut client = Client::connect(world.address).await.unwrap();
            client.send(handshake("/v1/realtime?model=m").as_bytes()).await.unwrap();
            assert_eq!(client.head().await.unwrap().status(), 101);
            assert_eq!(client.rest(3 * short).await, None, "it ended");
            client.send(b"still there?").await.unwrap();
            while client.unread().is_empty() {
                assert_eq!(client.rest(short / 1000).await, None, "it ended");
            }
            drop(client);
            assert!(eventually(BOUND, || world.at_rest()).await, "the slot comes back");
        },
    );
    join_all(kept).await;
}

#[tokio::test]
async fn a_handshake_that_an_engine_does_not_answer_is_504() {
    let engine = Origin::start(|_| vec![Action::Hang]).await.unwrap();
    let short = Duration::from_millis(200);
    let limits = Limits { first_byte: short, silence: short, ..limits() };
    let world = World::with(engine.address, vec![model("m", None)], limits, 1 << 30);
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(handshake("/v1/realtime?model=m").as_bytes()).await.unwrap();
    assert_eq!(client.answer_to("GET").await.unwrap().status(), 504);
    assert!(eventually(BOUND, || world.at_rest() && engine.open_connections() == 0).await);
}

/// Pingora takes the end of a handshake's empty body for the end of the upgraded connection where the engine answers
/// before it has noted that end.
#[tokio::test(flavor = "multi_thread")]
async fn no_handshake_is_answered_too_fast() {
    let engine = AtHead::echo().await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    for round in 0..100 {
        let mut client = Client::connect(world.address).await.unwrap();
        let head = format!("GET /v1/realtime?model=m HTTP/1.1\r\nHost: g\r\n{HANDSHAKE}\r\n");
        client.send(head.as_bytes()).await.unwrap();
        assert_eq!(client.head().await.unwrap().status(), 101);
        client.send(b"still there?").await.unwrap();
        while client.unread().is_empty() {
            let ended = client.rest(Duration::from_millis(2)).await;
            assert_eq!(ended, None, "it ended in round {round}");
        }
    }
}
