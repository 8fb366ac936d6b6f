//! What a request's head decides, and what every answer carries.

use std::time::Duration;

use flexinfer_gateway::lifecycle::Phase;
use flexinfer_gateway::server::Patience;
use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::origin::Origin;
use flexinfer_testkit::{eventually, eventually_async};

use crate::world::{BOUND, World, model};

const CHAT: &str = "/v1/chat/completions";
const ASK: &[u8] = br#"{"model":"m"}"#;

#[tokio::test]
async fn every_answer_carries_the_requests_id() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    let id = [("X-Request-ID", "mine-1")];
    for (path, status) in [(CHAT, 200), ("/v1/nowhere", 404)] {
        client.send(&request("POST", path, &id, ASK)).await.unwrap();
        let answer = client.answer().await.unwrap();
        assert_eq!((answer.status(), answer.head.header("x-request-id")), (status, Some("mine-1")));
        // An answer before the body was read ends the connection.
        client = Client::connect(world.address).await.unwrap();
    }
    assert_eq!(engine.requests()[0].head.header("x-request-id"), Some("mine-1"));
    client.post(CHAT, ASK).await.unwrap();
    let made = client.answer().await.unwrap().head.header("x-request-id").map(str::to_owned);
    assert!(made.is_some());
    assert_eq!(engine.requests()[1].head.header("x-request-id"), made.as_deref());
}

#[tokio::test]
async fn an_unknown_model_is_404_in_openais_shape_and_the_connection_goes_on() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("llama-small", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    for _ in 0..2 {
        client.post(CHAT, br#"{"model":"lama-small"}"#).await.unwrap();
        let answer = client.answer().await.unwrap();
        let error = &answer.json()["error"];
        assert_eq!(answer.status(), 404);
        assert_eq!(error["code"], "model_not_found");
        assert_eq!(error["param"], "model");
        assert!(
            error["message"].as_str().unwrap().contains("llama-small"),
            "no suggestion: {error}"
        );
    }
    let page = String::from_utf8(world.metrics.page().unwrap()).unwrap();
    assert!(
        !page.contains("lama-small\"") || !page.contains("\"lama-small"),
        "a made-up name became a label"
    );
}

#[tokio::test]
async fn the_models_path_is_taken_off_and_the_query_stays() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("org/name", Some("engine-name"))]);
    let mut client = Client::connect(world.address).await.unwrap();
    for path in [
        "/model/org/name/v1/chat/completions?a=%20b",
        "/model/org%2Fname/v1/chat/completions?a=%20b",
    ] {
        client.post(path, br#"{"model":"whatever"}"#).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 200, "{path}");
    }
    for seen in engine.requests() {
        assert_eq!(seen.head.target(), "/v1/chat/completions?a=%20b");
        assert_eq!(seen.body, br#"{"model":"engine-name"}"#);
        assert_eq!(seen.head.header("host"), Some(engine.address.to_string().as_str()));
    }
}

#[tokio::test]
async fn lengths_that_two_readers_could_disagree_on_are_refused() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    for framing in
        ["Content-Length: 13\r\nTransfer-Encoding: chunked", "Transfer-Encoding: identity, chunked"]
    {
        let mut client = Client::connect(world.address).await.unwrap();
        let bytes = format!(
            "POST {CHAT} HTTP/1.1\r\nHost: g\r\n{framing}\r\n\r\nd\r\n{{\"model\":\"m\"}}\r\n0\r\n\r\n"
        );
        client.send(bytes.as_bytes()).await.unwrap();
        let answer = client.answer().await.unwrap();
        assert_eq!(
            (answer.status(), answer.json()["error"]["code"].as_str()),
            (400, Some("invalid_framing"))
        );
        assert_eq!(answer.head.header("connection"), Some("close"));
    }
    assert_eq!(engine.requests().len(), 0);
}

#[tokio::test]
async fn a_client_that_asks_first_is_invited_or_refused_before_it_sends() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let ask = |name: &str, length: usize| {
        format!(
            "POST {CHAT} HTTP/1.1\r\nHost: g\r\nX-Model-ID: {name}\r\nContent-Length: {length}\r\nExpect: 100-continue\r\n\r\n"
        )
    };
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(ask("m", ASK.len()).as_bytes()).await.unwrap();
    assert_eq!(client.head().await.unwrap().status(), 100);
    client.send(ASK).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    assert_eq!(engine.requests()[0].head.header("expect"), None);
    for (name, length, status) in [("nobody", 5, 404), ("m", 1 << 40, 413)] {
        let mut client = Client::connect(world.address).await.unwrap();
        client.send(ask(name, length).as_bytes()).await.unwrap();
        assert_eq!(client.head().await.unwrap().status(), status);
    }
}

#[tokio::test]
async fn a_request_shorter_than_http2s_preface_is_answered() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![]);
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
    assert_eq!(client.head().await.unwrap().status(), 404);
}

#[tokio::test]
async fn the_models_are_listed_asleep_or_not() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("b", None), model("a", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&request("GET", "/v1/models", &[], b"")).await.unwrap();
    let list = client.answer_to("GET").await.unwrap().json();
    assert_eq!(list["data"][0]["id"], "a");
    assert_eq!(list["data"][1]["id"], "b");
    client.send(&request("GET", "/v1/models/b", &[], b"")).await.unwrap();
    assert_eq!(client.answer_to("GET").await.unwrap().json()["id"], "b");
    client.send(&request("HEAD", "/v1/models", &[], b"")).await.unwrap();
    let answer = client.answer_to("HEAD").await.unwrap();
    assert_eq!((answer.status(), answer.body.len()), (200, 0));
    client.send(&request("GET", "/v1/models/c", &[], b"")).await.unwrap();
    assert_eq!(client.answer_to("GET").await.unwrap().status(), 404);
}

#[tokio::test]
async fn a_gateway_that_stops_says_so_and_finishes_what_it_has_begun() {
    let engine = Origin::answering("{}").await.unwrap();
    let World { address, desk, lifecycle, gateway, .. } =
        World::new(engine.address, vec![model("m", None)]);
    desk.close();
    let mut waiting = Client::connect(address).await.unwrap();
    waiting.post(CHAT, ASK).await.unwrap();
    assert!(eventually(BOUND, || desk.waiting() == 1).await);

    let patience = Patience {
        drain_delay: Duration::from_millis(300),
        in_flight: BOUND,
        first_request: Duration::ZERO,
    };
    let stopping = tokio::spawn(gateway.stop(patience));
    assert!(eventually(BOUND, || lifecycle.phase() >= Phase::Draining).await);
    let ready = || async {
        let Ok(mut client) = Client::connect(address).await else { return false };
        let sent = client.send(&request("GET", "/readyz", &[], b"")).await;
        sent.is_ok() && client.answer_to("GET").await.is_ok_and(|answer| answer.status() == 503)
    };
    // The delay is short: either it was seen draining, or it has closed its listener by now.
    let closed = || lifecycle.phase() == Phase::Closed;
    assert!(eventually_async(BOUND, || async { ready().await || closed() }).await);

    assert!(eventually(BOUND, closed).await);
    let refused = || async { Client::connect(address).await.is_err() };
    assert!(eventually_async(BOUND, refused).await, "the listener is still open");
    desk.open();
    assert_eq!(waiting.answer().await.unwrap().status(), 200);
    assert!(stopping.await.unwrap(), "nothing was left in flight");
}
