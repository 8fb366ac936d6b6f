//! Faults of answers, set for the engine and asked for by single requests.

use std::io::ErrorKind;
use std::time::Duration;

use flexinfer_simulator::{AnswerFaults, Busy, Cut, Settings};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::{World, events, reach};

const CHAT: &str = "/v1/chat/completions";

fn hello(stream: bool) -> Value {
    json!({"messages": [{"role": "user", "content": "hello 你好🌍"}], "stream": stream})
}

async fn world(faults: AnswerFaults) -> World {
    World::new(Settings { answer_faults: faults, ..Settings::named("m") }).await
}

/// Everything that comes for a request until the connection ends, and how it ended.
async fn raw(world: &World, headers: &str, body: &Value) -> (Vec<u8>, std::io::Result<usize>) {
    let body = body.to_string();
    let mut stream = TcpStream::connect(world.engine.addr).await.unwrap();
    let request = format!(
        "POST {CHAT} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut all = Vec::new();
    let end = stream.read_to_end(&mut all).await;
    (all, end)
}

#[tokio::test]
async fn a_busy_engine_refuses_and_stays_healthy() {
    let busy = |busy| AnswerFaults { busy: Some(busy), ..AnswerFaults::default() };
    let world = world(busy(Busy::TooManyRequests)).await;
    let response = world.post(CHAT, &hello(false)).await;
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(world.get("/health").await.status(), 200);
    world.engine.set_faults(busy(Busy::Unavailable));
    assert_eq!(world.post(CHAT, &hello(false)).await.status(), 503);
    world.engine.set_faults(AnswerFaults::default());
    assert_eq!(world.post(CHAT, &hello(false)).await.status(), 200);
}

#[tokio::test]
async fn a_cut_stream_ends_after_its_tokens_without_an_end() {
    let world = world(AnswerFaults::default()).await;
    let (bytes, end) = raw(&world, "x-simulate-cut-after-tokens: 2\r\n", &hello(true)).await;
    assert!(end.is_ok(), "a plain close");
    let text = String::from_utf8(bytes).unwrap();
    assert_eq!(text.matches("\"content\":").count(), 3, "a role and two tokens in {text}");
    assert!(!text.ends_with("0\r\n\r\n"));
}

#[tokio::test]
async fn a_reset_stream_ends_with_a_reset() {
    let cut =
        AnswerFaults { cut_after_tokens: Some(2), cut: Cut::Reset, ..AnswerFaults::default() };
    let world = world(cut).await;
    for streams in [true, false] {
        let (_, end) = raw(&world, "", &hello(streams)).await;
        assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset, "stream: {streams}");
    }
}

#[tokio::test]
async fn a_cut_answer_is_shorter_than_its_length() {
    let world = world(AnswerFaults::default()).await;
    let (bytes, _) = raw(&world, "x-simulate-cut-after-tokens: 2\r\n", &hello(false)).await;
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let length = head.to_lowercase().lines().find_map(|line| {
        line.strip_prefix("content-length: ").and_then(|value| value.parse::<usize>().ok())
    });
    assert!(body.len() < length.unwrap() && !body.is_empty(), "{text}");
}

#[tokio::test]
async fn body_02_repeated_keys_are_repeated() {
    let faults = AnswerFaults { duplicate_keys: true, ..AnswerFaults::default() };
    let text = world(faults).await.post(CHAT, &hello(false)).await.text().await.unwrap();
    assert_eq!(text.matches("\"choices\":").count(), 2, "{text}");
    assert!(serde_json::from_str::<Value>(&text).is_ok());
}

#[tokio::test]
async fn sse_01_single_byte_writes_carry_the_same_stream() {
    let world = world(AnswerFaults::default()).await;
    let whole = world.post(CHAT, &hello(true)).await.text().await.unwrap();
    let asked = world.ask(CHAT, &hello(true)).header("x-simulate-one-byte-writes", "true");
    let torn = asked.send().await.unwrap().text().await.unwrap();
    assert!(torn.contains("你好🌍"));
    let said = |text: &str| -> Vec<Value> {
        events(text).into_iter().map(|(_, event)| event["choices"].clone()).collect()
    };
    assert_eq!(said(&whole), said(&torn));
}

#[tokio::test]
async fn a_slow_head_comes_late_and_an_answer_may_never_come() {
    let world = world(AnswerFaults::default()).await;
    let slow = world.ask(CHAT, &hello(false)).header("x-simulate-header-delay", "80ms");
    let begun = std::time::Instant::now();
    assert_eq!(slow.send().await.unwrap().status(), 200);
    assert!(begun.elapsed() >= Duration::from_millis(80));
    let never = world.ask(CHAT, &hello(false)).header("x-simulate-never-answers", "true");
    let asking = tokio::spawn(never.send());
    reach("it has the request", || world.engine.requests().len() == 2).await;
    reach("it has the body", || world.engine.requests()[1].body_complete).await;
    assert!(!asking.is_finished());
    asking.abort();
}

#[tokio::test]
async fn garbage_is_no_answer_to_a_health_probe() {
    let faults = AnswerFaults { garbage_health: true, ..AnswerFaults::default() };
    let world = world(faults).await;
    let probe = world.client.get(world.engine.url() + "/health").send().await;
    assert!(probe.is_err(), "{probe:?}");
    assert_eq!(world.post(CHAT, &hello(false)).await.status(), 200);
}

#[tokio::test]
async fn requests_ask_for_faults_only_where_they_may() {
    let world = World::new(Settings { request_faults: false, ..Settings::named("m") }).await;
    let asked = world.ask(CHAT, &hello(false)).header("x-simulate-busy", "503");
    assert_eq!(asked.send().await.unwrap().status(), 200);
    let allowed = self::world(AnswerFaults::default()).await;
    let wrong = allowed.ask(CHAT, &hello(false)).header("x-simulate-explode", "true");
    assert_eq!(wrong.send().await.unwrap().status(), 400);
}
