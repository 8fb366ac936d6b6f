//! Streams of events reach the client as the engine wrote them, event by event.

use std::sync::Arc;
use std::time::Duration;

use flexinfer_gateway::parts::Limits;
use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::eventually;
use flexinfer_testkit::h2_client::{H2Client, Upload};
use flexinfer_testkit::origin::{Action, Origin, chunked_answer};
use tokio::sync::Notify;

use crate::world::{BOUND, World, limits, model};

const CHAT: &str = "/v1/chat/completions";
const ASK: &[u8] = br#"{"model":"m","stream":true}"#;
const EVENTS: &[(&str, &str)] = &[("Content-Type", "text/event-stream; charset=utf-8")];

fn head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        .to_vec()
}

fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

#[tokio::test]
async fn sse_01_a_character_cut_in_the_middle_survives() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"你好🌍\"}}]}\n\ndata: [DONE]\n\n";
    let answer = chunked_answer(200, EVENTS, text.as_bytes(), &[1]);
    let engine = Origin::start(move |_| vec![Action::WriteSplit(answer.clone(), 1)]).await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, ASK).await.unwrap();
    assert_eq!(client.answer().await.unwrap().text(), text);
    let mut client = H2Client::connect(world.address).await.unwrap();
    let answer = client.request(&Upload::post(CHAT, ASK)).await.unwrap();
    assert_eq!(answer.body, text.as_bytes());
}

#[tokio::test]
async fn sse_09_each_event_is_passed_on_before_the_next_one_comes() {
    let next = Arc::new(Notify::new());
    let signal = Arc::clone(&next);
    let engine = Origin::start(move |_| {
        let mut script = vec![Action::Write(head())];
        for number in 0..5 {
            script.push(Action::Wait(Arc::clone(&signal)));
            script.push(Action::Write(chunk(&format!("data: {{\"number\":{number}}}\n\n"))));
        }
        script.push(Action::Write(b"0\r\n\r\n".to_vec()));
        script
    })
    .await
    .unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&request("POST", CHAT, &[("Accept-Encoding", "gzip")], ASK)).await.unwrap();
    let head = client.head().await.unwrap();
    assert_eq!(head.header("x-accel-buffering"), Some("no"));
    assert_eq!(head.header("cache-control"), Some("no-cache, no-transform"));
    assert_eq!(head.header("content-encoding"), None);
    for number in 0..5 {
        next.notify_one();
        let event = client.chunk().await.unwrap().expect("an event");
        assert_eq!(String::from_utf8_lossy(&event), format!("data: {{\"number\":{number}}}\n\n"));
    }
    assert_eq!(client.chunk().await.unwrap(), None);
    assert_eq!(engine.requests()[0].head.header("accept-encoding"), Some("identity"));
}

/// What is in the last event of a stream, which must be an error.
fn last_error(stream: &str) -> serde_json::Value {
    let event = stream.trim_end().rsplit("\n\n").next().unwrap();
    let json = event.strip_prefix("data: ").unwrap_or_else(|| panic!("no event: {stream:?}"));
    serde_json::from_str::<serde_json::Value>(json).unwrap()["error"].clone()
}

#[tokio::test]
async fn a_stream_that_is_cut_ends_with_an_error_and_not_as_if_it_were_whole() {
    for (begun, expected) in
        [("data: {\"a\":1}\n\n", "data: {\"a\":1}\n\n"), ("data: {\"a", "data: {\"a\n\n")]
    {
        let script = [head(), chunk(begun)].concat();
        let engine = Origin::start(move |_| vec![Action::Write(script.clone()), Action::Reset])
            .await
            .unwrap();
        let world = World::new(engine.address, vec![model("m", None)]);
        let mut client = Client::connect(world.address).await.unwrap();
        client.post(CHAT, ASK).await.unwrap();
        let answer = client.answer().await.unwrap();
        assert!(answer.complete && answer.text().starts_with(expected), "{}", answer.text());
        assert!(!answer.text().contains("[DONE]"));
        assert_eq!(last_error(&answer.text())["code"], "bad_gateway");
        let mut client = H2Client::connect(world.address).await.unwrap();
        let answer = client.request(&Upload::post(CHAT, ASK)).await.unwrap();
        assert_eq!(last_error(std::str::from_utf8(&answer.body).unwrap())["code"], "bad_gateway");
        assert!(eventually(BOUND, || world.at_rest()).await);
    }
}

#[tokio::test]
async fn sse_12_frames_that_nobody_understands_pass_unchanged() {
    let frames = [
        r#"{"usage":{}}"#,
        r#"{"choices":[]}"#,
        r#"{"choices":null}"#,
        "{}",
        "[]",
        "null",
        "not json",
        "[DONE]",
    ];
    let mut text = frames.map(|frame| format!("data: {frame}\n\n")).concat();
    text.push_str("event: error\n\n: ping\n\n");
    let answer = chunked_answer(200, EVENTS, text.as_bytes(), &[7]);
    let engine = Origin::start(move |_| vec![Action::Write(answer.clone())]).await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, ASK).await.unwrap();
    assert_eq!(client.answer().await.unwrap().text(), text);
}

#[tokio::test]
async fn sse_13_a_stream_may_last_as_long_as_it_likes_but_not_fall_silent() {
    let silence = Duration::from_millis(600);
    // The limit of an answer's silence is Pingora's where it is the longer one, else ours.
    for first_byte in [silence, BOUND] {
        let short = Limits { silence, body_deadline: silence, connect: silence, ..limits() };
        falls_silent(Limits { first_byte, ..short }).await;
    }
}

async fn falls_silent(limits: Limits) {
    let silence = limits.silence;
    let next = Arc::new(Notify::new());
    let signal = Arc::clone(&next);
    let engine = Origin::start(move |_| {
        let mut script = vec![Action::Write(head())];
        for _ in 0..8 {
            script.push(Action::Wait(Arc::clone(&signal)));
            script.push(Action::Write(chunk("data: {}\n\n")));
        }
        script.push(Action::Hang);
        script
    })
    .await
    .unwrap();
    let world = World::with(engine.address, vec![model("m", None)], limits, 1 << 30);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, ASK).await.unwrap();
    client.head().await.unwrap();
    let mut events = tokio::time::interval(silence / 4);
    for _ in 0..8 {
        events.tick().await;
        next.notify_one();
        assert!(client.chunk().await.unwrap().is_some(), "cut while it was alive");
    }
    let last = client.chunk().await.unwrap().expect("an event that says why");
    assert_eq!(last_error(std::str::from_utf8(&last).unwrap())["code"], "timeout");
    assert_eq!(client.chunk().await.unwrap(), None);
    assert!(eventually(BOUND, || world.at_rest() && engine.open_connections() == 0).await);
}

#[tokio::test]
async fn sse_10_the_head_of_a_stream_does_not_wait_for_its_first_event() {
    let next = Arc::new(Notify::new());
    let signal = Arc::clone(&next);
    let engine = Origin::start(move |_| {
        vec![
            Action::Write(head()),
            Action::Wait(Arc::clone(&signal)),
            Action::Write(b"0\r\n\r\n".to_vec()),
        ]
    })
    .await
    .unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, ASK).await.unwrap();
    assert_eq!(client.head().await.unwrap().status(), 200, "the engine says nothing more yet");
    next.notify_one();
    assert_eq!(client.chunk().await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn route_14_probes_are_answered_while_many_streams_flow() {
    let events = (0..200).map(|_| chunk("data: {}\n\n")).collect::<Vec<_>>().concat();
    let whole = [head(), events].concat();
    let engine = Origin::start(move |_| vec![Action::WriteSplit(whole.clone(), 200), Action::Hang])
        .await
        .unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let address = world.address;
    let streams: Vec<_> = (0..200)
        .map(|_| {
            tokio::spawn(async move {
                let mut client = Client::connect(address).await.unwrap();
                client.post(CHAT, ASK).await.unwrap();
                client.head().await.unwrap();
                let mut events = Vec::new();
                while events.len() < 200 * "data: {}\n\n".len() {
                    events.extend(client.chunk().await.unwrap().expect("more events"));
                }
                client
            })
        })
        .collect();
    for _ in 0..30 {
        let probe = async {
            let mut client = Client::connect(address).await.unwrap();
            client.send(&request("GET", "/healthz", &[], b"")).await.unwrap();
            client.answer_to("GET").await.unwrap().status()
        };
        assert_eq!(tokio::time::timeout(BOUND, probe).await.ok(), Some(200));
    }
    let mut open = Vec::new();
    for stream in streams {
        open.push(stream.await.unwrap());
    }
    assert_eq!(world.desk.held(), 200);
    drop(open);
    assert!(eventually(BOUND, || world.at_rest()).await);
}
