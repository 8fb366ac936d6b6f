//! Whatever a client sends, an event of the log is one line, and nothing in it can act on a terminal.

use std::io;
use std::sync::Arc;

use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::h2_client::{H2Client, Upload};
use flexinfer_testkit::origin::Origin;
use parking_lot::Mutex;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::set_default;

use crate::world::{World, model};

const CHAT: &str = "/v1/chat/completions";

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends what has been used to forge lines of logs, in every place where a client has a word.
async fn attack(world: &World) {
    let names = [r"a\r\nforged", r"a\u0000\u001b[31mforged", r"a\u2028forged\u0085forged"];
    for name in names {
        let body = format!(r#"{{"model":"{name}","messages":[]}}"#);
        let mut client = Client::connect(world.address).await.unwrap();
        client.post(CHAT, body.as_bytes()).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 404);
    }
    let headers = [
        ("X-Request-ID", "a\tforged"),
        ("X-Model-ID", "a\u{85}forged"),
        ("User-Agent", "\u{9b}31mforged"),
        ("Content-Encoding", "\tforged"),
        ("Origin", "http://a\tforged"),
    ];
    for header in headers {
        let mut client = Client::connect(world.address).await.unwrap();
        client.send(&request("POST", CHAT, &[header], br#"{"model":"m"}"#)).await.unwrap();
        let _ = client.answer().await;
    }
    let paths = ["/model/a%0d%0aforged/v1/x", "/%1b[31mforged", "/model/m/a%00forged?q=%0aforged"];
    for path in paths {
        let mut client = Client::connect(world.address).await.unwrap();
        client.send(&request("GET", path, &[], b"")).await.unwrap();
        let _ = client.answer().await;
        let mut client = H2Client::connect(world.address).await.unwrap();
        let _ = client.request(&Upload { method: "GET", ..Upload::post(path, b"") }).await;
    }
    for bytes in
        [&b"GET /\x1b[31mforged HTTP/1.1\r\nHost: g\r\n\r\n"[..], b"G\x00T / HTTP/1.1\r\n\r\n"]
    {
        let mut client = Client::connect(world.address).await.unwrap();
        client.send(bytes).await.unwrap();
        let _ = client.finish_sending().await;
        let _ = client.answer().await;
    }
}

fn check(log: &str, begins: impl Fn(&str) -> bool) {
    assert!(log.contains("forged"), "nothing of it was logged, so nothing is shown: {log}");
    for line in log.lines() {
        assert!(begins(line), "an event is cut in two: {line:?}");
        let acts = |character: char| character.is_control() && character != '\t';
        assert!(!line.contains(acts), "a control character: {line:?}");
    }
}

#[tokio::test]
async fn a_line_of_json_is_one_event_whatever_a_client_sends() {
    let kept = Kept::default();
    let writer = kept.clone();
    let log =
        tracing_subscriber::fmt().json().flatten_event(true).with_max_level(LevelFilter::DEBUG);
    let _kept = set_default(log.with_writer(move || writer.clone()).finish());
    let engine = Origin::answering("{}").await.unwrap();
    attack(&World::new(engine.address, vec![model("m", None)])).await;
    let log = String::from_utf8(kept.0.lock().clone()).unwrap();
    check(&log, |line| serde_json::from_str::<serde_json::Value>(line).is_ok());
}

#[tokio::test]
async fn a_line_for_people_is_one_event_whatever_a_client_sends() {
    let kept = Kept::default();
    let writer = kept.clone();
    let log = tracing_subscriber::fmt().compact().with_target(false).with_ansi(false);
    let log = log.with_max_level(LevelFilter::DEBUG).with_writer(move || writer.clone());
    let _kept = set_default(log.finish());
    let engine = Origin::answering("{}").await.unwrap();
    attack(&World::new(engine.address, vec![model("m", None)])).await;
    let log = String::from_utf8(kept.0.lock().clone()).unwrap();
    check(&log, |line| line.starts_with("20"));
}
