//! Responses that their engines make in the background: whatever tells how far one has come, its tokens are charged
//! once.

use std::sync::atomic::{AtomicUsize, Ordering};

use flexinfer_testkit::client::{Answer, Client, request};
use flexinfer_testkit::eventually;
use flexinfer_testkit::origin::{Action, Origin, answer, chunked_answer};

use crate::limits::metric;
use crate::ties::{ask_without_model, counting};
use crate::world::{BOUND, World};

const KEY: [(&str, &str); 2] = [("Authorization", "Bearer alice"), ("X-Model-ID", "m")];
const MADE: &str = "/v1/responses/resp_a";

/// As an engine says it: the tools, which the client sent, say what they like.
fn response(status: &str, usage: &str) -> String {
    format!(
        r#"{{"id":"resp_a","object":"response","status":"{status}","tools":[{{"type":"function",
        "parameters":{{"usage":{{"input_tokens":0,"output_tokens":1}}}}}}],"usage":{usage}}}"#
    )
}

fn took(tokens: u64) -> String {
    response("completed", &format!(r#"{{"input_tokens":0,"output_tokens":{tokens}}}"#))
}

/// An engine that says of its one response one thing after the other, and the last one again and again.
async fn engine(says: Vec<String>) -> Origin {
    let looked = AtomicUsize::new(0);
    let script = move |_: &_| {
        let last = says.len() - 1;
        let next = looked.fetch_add(1, Ordering::SeqCst).min(last);
        vec![Action::Write(answer(200, &[], says[next].as_bytes()))]
    };
    Origin::start(script).await.unwrap()
}

async fn create(world: &World, more: &str) -> Answer {
    let body = format!(r#"{{"model":"m","input":"Hi"{more}}}"#);
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&request("POST", "/v1/responses", &KEY, body.as_bytes())).await.unwrap();
    client.answer().await.unwrap()
}

async fn look(world: &World) -> Answer {
    ask_without_model(world, &KEY[..1], "GET", MADE).await
}

fn left(answer: &Answer) -> u64 {
    assert_eq!(answer.status(), 200, "{}", answer.text());
    answer.head.header("x-ratelimit-remaining-tokens").unwrap().parse().unwrap()
}

const BEHIND: &str = r#","background":true,"max_output_tokens":80"#;

#[tokio::test]
async fn body_19_a_response_in_the_background_is_charged_when_it_is_known_what_it_took() {
    let queued = response("queued", "null");
    let under_way = response("in_progress", "null");
    // More than comes back in an hour.
    let engine = engine(vec![queued.clone(), queued, under_way, took(100_000)]).await;
    let world = counting(engine.address, 1000);
    for _ in 0..2 {
        assert_eq!(create(&world, BEHIND).await.status(), 200, "no more than its reservation");
    }
    for _ in 0..2 {
        assert_eq!(look(&world).await.status(), 200);
    }
    assert!(eventually(BOUND, || world.at_rest()).await);
    let owing = create(&world, BEHIND).await;
    assert_eq!(owing.status(), 429, "what it took is not charged");
    assert_eq!(engine.requests().len(), 4);
}

#[tokio::test]
async fn body_19_a_response_in_the_background_is_charged_once() {
    let engine = engine(vec![response("queued", "null"), took(50_000)]).await;
    let world = counting(engine.address, 100_000);
    create(&world, BEHIND).await;
    left(&look(&world).await);
    assert!(eventually(BOUND, || world.at_rest()).await);
    let charged = left(&look(&world).await);
    for _ in 0..3 {
        let still = left(&look(&world).await);
        assert!(still >= charged, "{still} are left of {charged}: it was charged again");
    }
    let told = r#"flexinfer_proxy_request_completion_tokens_sum{model="m"} 50001"#;
    assert!(eventually(BOUND, || metric(&world, told)).await, "and counted once");
}

/// An engine that takes no notice of it answers whole.
#[tokio::test]
async fn body_19_an_answer_at_once_to_what_may_go_on_costs_what_it_took() {
    let engine = engine(vec![took(100_000)]).await;
    for asked in ["true", "1", "\"yes\""] {
        let world = counting(engine.address, 1000);
        let more = format!(r#","max_output_tokens":80,"background":{asked}"#);
        assert_eq!(create(&world, &more).await.status(), 200);
        assert!(eventually(BOUND, || world.at_rest()).await);
        assert_eq!(create(&world, BEHIND).await.status(), 429, "{asked}");
    }
}

#[tokio::test]
async fn body_19_a_stream_in_the_background_that_is_left_costs_what_was_reserved_and_in_the_end_all()
 {
    for (background, left_early) in [("false", 200), ("true", 429)] {
        let event = "data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_a\"}}\n\n";
        let events = [("Content-Type", "text/event-stream")];
        let begun = chunked_answer(200, &events, event.as_bytes(), &[event.len()]);
        let begun = begun.strip_suffix(b"0\r\n\r\n").unwrap().to_owned();
        let engine = Origin::start(move |seen| match (seen.connection, seen.head.method()) {
            (0, _) => vec![Action::Write(begun.clone()), Action::Hang],
            (_, "POST") => vec![Action::Write(answer(200, &[], b"{}"))],
            _ => vec![Action::Write(answer(200, &[], took(100_000).as_bytes()))],
        })
        .await
        .unwrap();
        let world = counting(engine.address, 1000);
        let asked = format!(r#","stream":true,"background":{background},"max_output_tokens":900"#);
        let body = format!(r#"{{"model":"m","input":"Hi"{asked}}}"#);
        let mut client = Client::connect(world.address).await.unwrap();
        client.send(&request("POST", "/v1/responses", &KEY, body.as_bytes())).await.unwrap();
        assert_eq!(client.head().await.unwrap().status(), 200);
        assert!(client.chunk().await.unwrap().is_some());
        drop(client);
        assert!(eventually(BOUND, || world.at_rest()).await);
        let next = create(&world, r#","max_output_tokens":900"#).await;
        assert_eq!(next.status(), left_early, "background: {background}");
        if background == "true" {
            assert_eq!(look(&world).await.status(), 200);
            assert!(eventually(BOUND, || world.at_rest()).await);
            assert_eq!(look(&world).await.status(), 429, "what it took in the end is owed");
        }
    }
}
