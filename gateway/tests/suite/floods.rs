//! More than anybody should send, and wishes that nobody should grant: refused early, held in bounds, and
//! everybody else is served meanwhile.

use flexinfer_gateway::parts::Limits;
use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::eventually;
use flexinfer_testkit::h2_client::{H2Client, Upload};
use flexinfer_testkit::origin::Action;
use flexinfer_testkit::origin::{Origin, answer};

use crate::world::{BOUND, World, limits, model};

const CHAT: &str = "/v1/chat/completions";
const ASK: &[u8] = br#"{"model":"m"}"#;

async fn is_served(world: &World) -> bool {
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, ASK).await.unwrap();
    client.answer().await.unwrap().status() == 200
}

#[tokio::test]
async fn a_flood_of_headers_is_refused_and_reaches_no_engine() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let many: Vec<String> = (0..2000).map(|number| format!("X-{number}: a\r\n")).collect();
    let many = many.concat();
    let long = format!("X: {}\r\n", "a".repeat(4 << 20));
    for headers in [many, long] {
        let mut client = Client::connect(world.address).await.unwrap();
        let bytes = format!("POST {CHAT} HTTP/1.1\r\nHost: g\r\n{headers}\r\n");
        // It may be refused before all of it was taken.
        let _ = client.send(bytes.as_bytes()).await;
        let status = client.answer().await.map_or(0, |answer| answer.status());
        assert!([0, 400, 431].contains(&status), "{status}");
    }
    let large = "a".repeat(8000);
    let names: Vec<String> = (0..20).map(|number| format!("x-{number}")).collect();
    let headers: Vec<(&str, &str)> =
        names.iter().map(|name| (name.as_str(), large.as_str())).collect();
    let mut client = H2Client::connect(world.address).await.unwrap();
    let upload = Upload { headers: &headers, ..Upload::post(CHAT, ASK) };
    let status = client.request(&upload).await.map_or(0, |answer| answer.status);
    assert!([0, 400, 431].contains(&status), "{status}");
    assert_eq!(engine.requests().len(), 0);
    assert!(is_served(&world).await);
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn a_body_without_an_end_is_refused_at_the_limit_and_not_held_beyond_it() {
    let engine = Origin::answering("{}").await.unwrap();
    let tight = Limits { max_body: 200_000, ..limits() };
    let world = World::with(engine.address, vec![model("m", None)], tight, 1 << 20);
    let mut client = Client::connect(world.address).await.unwrap();
    let head = format!("POST {CHAT} HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(head.as_bytes()).await.unwrap();
    let chunk = format!("{:x}\r\n{}\r\n", 10_000, "x".repeat(10_000));
    let mut sent = 0;
    // Whoever sends on is cut off in the end.
    while sent < 2000 && client.send(chunk.as_bytes()).await.is_ok() {
        sent += 1;
        assert!(world.budget.held() <= 200_000, "{} bytes are held", world.budget.held());
    }
    if let Ok(answer) = client.answer().await {
        assert_eq!(answer.json()["error"]["code"], "body_too_large");
    }
    assert!(is_served(&world).await);
    drop(client);
    assert!(eventually(BOUND, || world.at_rest()).await);
    assert_eq!(engine.requests().len(), 1);
}

#[tokio::test]
async fn nobody_gets_past_the_gateway_by_an_upgrade_to_something_else() {
    // An engine that would agree to anything.
    let agreed = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n";
    let plain = answer(200, &[], b"{}");
    let engine = Origin::start(move |seen| {
        let agrees = seen.head.header("upgrade").is_some();
        vec![Action::Write(if agrees { agreed.to_vec() } else { plain.clone() })]
    })
    .await
    .unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    for headers in [
        "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n",
        "Upgrade: TLS/1.0\r\nConnection: upgrade\r\n",
        "Upgrade: websocket, h2c\r\nConnection: upgrade\r\n",
        "Upgrade: websocket\r\nUpgrade: h2c\r\nConnection: upgrade\r\n",
    ] {
        let mut client = Client::connect(world.address).await.unwrap();
        let head = format!("GET /model/m/x HTTP/1.1\r\nHost: g\r\n{headers}\r\n");
        client.send(head.as_bytes()).await.unwrap();
        assert_eq!(client.answer_to("GET").await.unwrap().status(), 200, "{headers}");
        let seen = engine.requests().pop().unwrap();
        assert_eq!(seen.head.header("upgrade"), None, "{headers}");
        assert_eq!(seen.head.header("connection").filter(|value| value.contains("pgrade")), None);
    }
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn an_upgrade_that_an_engine_does_not_grant_leaves_an_ordinary_connection() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    let websocket =
        "GET /model/m/x HTTP/1.1\r\nHost: g\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n";
    client.send(websocket.as_bytes()).await.unwrap();
    assert_eq!(client.answer_to("GET").await.unwrap().status(), 200);
    assert!(is_served(&world).await);
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn trailers_of_requests_and_answers_go_no_further_and_break_nothing() {
    let with_trailers = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\n{}\r\n0\r\nX-Sum: 1\r\n\r\n";
    let engine = Origin::start(move |_| vec![Action::Write(with_trailers.to_vec())]).await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    let head = format!("POST {CHAT} HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n");
    let body = "d\r\n{\"model\":\"m\"}\r\n0\r\nX-Model-ID: nobody\r\n\r\n";
    for _ in 0..2 {
        client.send([head.as_str(), body].concat().as_bytes()).await.unwrap();
        let answer = client.answer().await.unwrap();
        assert_eq!((answer.status(), answer.text().as_str()), (200, "{}"));
        assert!(answer.complete);
    }
    for seen in engine.requests() {
        assert_eq!(seen.body, ASK);
        assert_eq!(seen.head.header("x-model-id"), None);
    }
    assert_eq!(engine.faults(), []);
    client.send(&request("GET", "/v1/models", &[], b"")).await.unwrap();
    assert_eq!(client.answer_to("GET").await.unwrap().status(), 200, "the connection goes on");
}
