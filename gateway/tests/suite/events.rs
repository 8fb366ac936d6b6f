//! Streams of events reach the client as the engine wrote them, event by event.

use std::sync::Arc;

use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::h2_client::{H2Client, Upload};
use flexinfer_testkit::origin::{Action, Origin, chunked_answer};
use tokio::sync::Notify;

use crate::world::{World, model};

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
