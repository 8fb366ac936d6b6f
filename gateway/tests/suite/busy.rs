//! Engines that say that they can take nothing now: the request waits, and its client does not see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use flexinfer_core::fleet::{Fleet, Served};
use flexinfer_core::routing::Strategy;
use flexinfer_gateway::parts::Limits;
use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::eventually;
use flexinfer_testkit::origin::{Action, Origin, answer};

use crate::limits::{chat, limited};
use crate::world::{BOUND, Terms, World, limits, model};

const CHAT: &str = "/v1/chat/completions";
const ASK: &[u8] = br#"{"model":"m","prompt":"x"}"#;

fn of_backend(backend: &str) -> Served {
    let effective = model("m", None).effective;
    Served::new(effective, backend, "", 0)
}

/// An engine that answers so many times with `refusal`, then with 200.
async fn busy_for(times: usize, refusal: Vec<u8>) -> Origin {
    let asked = Arc::new(AtomicUsize::new(0));
    let script = move |_: &_| {
        let refused = asked.fetch_add(1, Ordering::SeqCst) < times;
        let whole = if refused { refusal.clone() } else { answer(200, &[], b"{}") };
        vec![Action::Write(whole)]
    };
    Origin::start(script).await.unwrap()
}

#[tokio::test]
async fn route_12_an_engine_that_still_loads_is_asked_until_it_serves() {
    let loading = answer(503, &[], br#"{"error":{"code":503,"message":"Loading model"}}"#);
    let engine = busy_for(3, loading).await;
    let world = World::new(engine.address, vec![of_backend("llamacpp")]);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, ASK).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    let seen = engine.requests();
    assert_eq!(seen.len(), 4);
    assert!(seen.iter().all(|request| request.body == ASK), "every try sends the same body");
    let page = String::from_utf8(world.metrics.page().unwrap()).unwrap();
    let retries = r#"flexinfer_proxy_upstream_retries_total{model="m",reason="busy"} 3"#;
    assert!(page.contains(retries), "{page}");
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn route_15_an_engine_that_was_busy_once_has_its_share_again_without_saying_so() {
    let busy = busy_for(1, answer(503, &[("Retry-After", "0")], b"{}")).await;
    let other = Origin::answering("{}").await.unwrap();
    let world = World::new(busy.address, vec![model("m", None)]);
    world.desk.spread(Strategy::RoundRobin, &[busy.address, other.address]);
    let ask = async || {
        let mut client = Client::connect(world.address).await.unwrap();
        client.post(CHAT, ASK).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 200);
    };
    // Both are asked, and one says that it is busy: nothing of that is remembered.
    ask().await;
    ask().await;
    let (before, others) = (busy.requests().len(), other.requests().len());
    for _ in 0..6 {
        ask().await;
    }
    assert_eq!((busy.requests().len() - before, other.requests().len() - others), (3, 3));
}

#[tokio::test]
async fn a_long_body_is_sent_again_too() {
    let engine = busy_for(1, answer(503, &[("Retry-After", "0")], b"{}")).await;
    let world = World::new(engine.address, vec![model("m", Some("engine-name"))]);
    let mut long = br#"{"model":"m","prompt":""#.to_vec();
    long.resize(1 << 20, b'x');
    long.extend_from_slice(br#""}"#);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, &long).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    let seen = engine.requests();
    assert!(seen.last().is_some_and(|last| last.body.len() > 1 << 20));
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn a_refusal_that_is_an_answer_reaches_the_client_as_it_is() {
    for (backend, status) in [("vllm", 503), ("llamacpp", 429), ("llamacpp", 500)] {
        let engine = busy_for(1, answer(status, &[], b"{\"engine\":1}")).await;
        let world = World::new(engine.address, vec![of_backend(backend)]);
        let mut client = Client::connect(world.address).await.unwrap();
        client.post(CHAT, ASK).await.unwrap();
        let answer = client.answer().await.unwrap();
        assert_eq!((answer.status(), answer.text().as_str()), (status, "{\"engine\":1}"));
    }
}

#[tokio::test]
async fn who_has_waited_long_enough_reads_the_engines_own_answer() {
    let engine =
        busy_for(usize::MAX, answer(503, &[("Retry-After", "1")], b"{\"engine\":1}")).await;
    let patience = Limits { busy: Duration::from_millis(400), ..limits() };
    let world = World::with(engine.address, vec![model("m", None)], patience, 1 << 30);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, ASK).await.unwrap();
    let answer = client.answer().await.unwrap();
    assert_eq!((answer.status(), answer.text().as_str()), (503, "{\"engine\":1}"));
    assert_eq!(answer.head.header("retry-after"), Some("1"));
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn a_client_that_leaves_meanwhile_is_waited_for_no_more() {
    let engine = busy_for(usize::MAX, answer(503, &[("Retry-After", "3600")], b"{}")).await;
    let patience = Limits { busy: Duration::from_secs(7200), ..limits() };
    let world = World::with(engine.address, vec![model("m", None)], patience, 1 << 30);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, ASK).await.unwrap();
    // Asked for another engine, the desk has only this one.
    assert!(eventually(BOUND, || engine.requests().len() == 2 && world.desk.held() == 0).await);
    drop(client);
    assert!(eventually(BOUND, || world.at_rest()).await);
    assert_eq!(engine.requests().len(), 2);
}

#[tokio::test]
async fn rate_03_what_a_busy_engine_has_not_begun_is_not_spent_by_a_client_that_leaves() {
    let engine = busy_for(2, answer(503, &[("Retry-After", "3600")], b"{}")).await;
    let limits = Limits { busy: Duration::from_secs(7200), ..limits() };
    let rules = limited("tokensPerMinute: 100, requestsPerMinute: 1");
    let (fleet, _) = Fleet::build(vec![model("m", None)]);
    let world = World::serve(engine.address, fleet, Terms { limits, rules, ..Terms::default() });
    let body = br#"{"model":"m","max_tokens":100}"#;
    let mut client = Client::connect(world.address).await.unwrap();
    let key = [("Authorization", "Bearer alice")];
    client.send(&request("POST", CHAT, &key, body)).await.unwrap();
    assert!(eventually(BOUND, || engine.requests().len() == 2 && world.desk.held() == 0).await);
    drop(client);
    assert!(eventually(BOUND, || world.at_rest()).await);
    let answer = chat(&world, body).await;
    assert_eq!(answer.status(), 200, "{}", answer.text());
}
