//! Bodies on their way in: what does not come whole goes nowhere, and what comes whole arrives as it
//! was sent.

use std::net::Ipv4Addr;
use std::time::Duration;

use flexinfer_gateway::parts::Limits;
use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::eventually;
use flexinfer_testkit::origin::Origin;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::world::{BOUND, World, limits, model};

const CHAT: &str = "/v1/chat/completions";

async fn world() -> (Origin, World) {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("m", Some("its-own-name"))]);
    (engine, world)
}

#[tokio::test]
async fn body_05_numbers_arrive_as_they_were_written() {
    let (engine, world) = world().await;
    let mut client = Client::connect(world.address).await.unwrap();
    let text = r#"{"model":"m","top_p":0.95,"n":1e0,"seed":123456789012345678901234567890}"#;
    client.post(CHAT, text.as_bytes()).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    let expected = text.replace(r#""m""#, r#""its-own-name""#);
    assert_eq!(String::from_utf8_lossy(&engine.requests()[0].body), expected);
}

#[tokio::test]
async fn the_head_of_a_request_and_its_body_leave_in_one_packet() {
    let engine = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = engine.local_addr().unwrap();
    let world = World::new(address, vec![model("m", Some("its-own-name"))]);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, br#"{"model":"m"}"#).await.unwrap();
    let (mut socket, _) = engine.accept().await.unwrap();
    for _ in 0..3 {
        let mut first = vec![0; 4096];
        let read = socket.read(&mut first).await.unwrap();
        let request = String::from_utf8_lossy(&first[..read]);
        assert!(request.ends_with(r#"{"model":"its-own-name"}"#), "{request}");
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        socket.write_all(answer).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 200);
        client.post(CHAT, br#"{"model":"m"}"#).await.unwrap();
    }
}

#[tokio::test]
async fn body_11_long_chats_and_pictures_pass() {
    let (engine, world) = world().await;
    let picture = "A".repeat(20 << 20);
    let message = format!(
        r#"{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{picture}"}}}}"#
    );
    let short = "x".repeat(32_769 - r#"{"model":"m","prompt":""}"#.len());
    let bodies = [
        format!(r#"{{"messages":[{{"role":"user","content":[{message}]}}],"model":"m"}}"#),
        format!(r#"{{"model":"m","messages":[{message},{message},{message}]}}"#),
        format!(r#"{{"model":"m","prompt":"{short}"}}"#),
    ];
    let mut client = Client::connect(world.address).await.unwrap();
    for body in &bodies {
        client.post(CHAT, body.as_bytes()).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 200, "{} bytes", body.len());
        let added = "its-own-name".len() - "m".len();
        assert_eq!(engine.requests().last().unwrap().body.len(), body.len() + added);
    }
    let too_long =
        format!("POST {CHAT} HTTP/1.1\r\nHost: g\r\nContent-Length: {}\r\n\r\n", 65 << 20);
    client.send(too_long.as_bytes()).await.unwrap();
    let answer = client.answer().await.unwrap();
    assert_eq!(
        (answer.status(), answer.json()["error"]["code"].as_str()),
        (413, Some("body_too_large"))
    );
}

#[tokio::test]
async fn body_14_a_body_that_does_not_come_whole_goes_nowhere() {
    let engine = Origin::answering("{}").await.unwrap();
    let limits = Limits { body_pause: Duration::from_millis(300), ..limits() };
    let world = World::with(engine.address, vec![model("m", None)], limits, 1 << 30);
    let head = format!("POST {CHAT} HTTP/1.1\r\nHost: g\r\nContent-Length: 5000000\r\n\r\n");
    let begun = [head.as_bytes(), br#"{"model":"m","input":""#, &vec![b'x'; 1 << 20]].concat();

    let mut leaving = Client::connect(world.address).await.unwrap();
    leaving.send(&begun).await.unwrap();
    assert!(eventually(BOUND, || world.budget.held() > 0).await);
    drop(leaving);
    assert!(eventually(BOUND, || world.at_rest()).await, "a body is kept for nobody");

    let mut silent = Client::connect(world.address).await.unwrap();
    silent.send(&begun).await.unwrap();
    let answer = silent.answer().await.unwrap();
    assert_eq!(
        (answer.status(), answer.json()["error"]["code"].as_str()),
        (408, Some("read_timeout"))
    );
    assert!(eventually(BOUND, || world.at_rest()).await);
    assert_eq!((engine.connections(), world.desk.booked()), (0, 0));
}

#[tokio::test]
async fn body_26_whatever_the_head_decides_is_said_before_the_body_is_invited() {
    let (engine, world) = world().await;
    let ask = |headers: &str| {
        let length = "Content-Length: 50000000\r\nExpect: 100-continue";
        format!("POST {CHAT} HTTP/1.1\r\nHost: g\r\n{length}\r\n{headers}\r\n\r\n")
    };
    for (headers, status) in [
        ("X-Model-ID: nobody", 404),
        ("X-Model-ID: m\r\nContent-Encoding: gzip", 415),
        ("X-Model-ID: m", 100),
    ] {
        let mut client = Client::connect(world.address).await.unwrap();
        client.send(ask(headers).as_bytes()).await.unwrap();
        assert_eq!(client.head().await.unwrap().status(), status, "{headers}");
    }
    let too_long = ask("").replace("50000000", "500000000");
    let impossible = ask("").replace("100-continue", "a-miracle");
    for (text, status) in [(too_long, 413), (impossible, 417)] {
        let mut client = Client::connect(world.address).await.unwrap();
        client.send(text.as_bytes()).await.unwrap();
        assert_eq!(client.head().await.unwrap().status(), status);
    }
    assert!(eventually(BOUND, || world.at_rest()).await);
    assert_eq!(engine.connections(), 0);
}

/// A form of small fields, each `name` and `value`, in this order.
fn form(fields: &[(&str, &str)]) -> String {
    let part = |(name, value): &(&str, &str)| {
        format!("--cut\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    fields.iter().map(part).collect::<String>() + "--cut--\r\n"
}

/// Sends the form of `fields` for a model, which is to arrive as that for the engine's own name of it.
async fn arrives_renamed(fields: impl Fn(&str) -> String) {
    let (engine, world) = world().await;
    let mut client = Client::connect(world.address).await.unwrap();
    let content_type = [("Content-Type", "multipart/form-data; boundary=cut")];
    let sent = request("POST", "/v1/audio/transcriptions", &content_type, fields("m").as_bytes());
    client.send(&sent).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    assert_eq!(String::from_utf8_lossy(&engine.requests()[0].body), fields("its-own-name"));
}

#[tokio::test]
async fn multi_04_repeated_fields_stay_repeated_and_in_order() {
    arrives_renamed(|name| {
        form(&[
            ("timestamp_granularities[]", "word"),
            ("image[]", "1"),
            ("model", name),
            ("timestamp_granularities[]", "segment"),
            ("image[]", "2"),
            ("known_speaker_names[]", "a"),
            ("known_speaker_names[]", "a"),
            ("image[]", "3"),
        ])
    })
    .await;
}

#[tokio::test]
async fn multi_10_fields_that_nobody_here_knows_are_passed_on() {
    arrives_renamed(|name| {
        form(&[
            ("file", "RIFF"),
            ("model", name),
            ("prompt", "a"),
            ("language", "de"),
            ("x_vendor", "1"),
        ])
    })
    .await;
}

#[tokio::test]
async fn multi_11_the_content_type_arrives_as_it_was_sent() {
    let (engine, world) = world().await;
    let body = form(&[("model", "m")]);
    let mut client = Client::connect(world.address).await.unwrap();
    for content_type in [
        "multipart/form-data; boundary=cut",
        "MULTIPART/FORM-DATA; BOUNDARY=cut",
        "multipart/form-data; charset=utf-8; boundary=\"cut\"",
        "multipart/mixed; boundary=cut",
    ] {
        let headers = [("Content-Type", content_type), ("X-Model-ID", "m")];
        let sent = request("POST", "/v1/audio/transcriptions", &headers, body.as_bytes());
        client.send(&sent).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 200, "{content_type}");
        let seen = engine.requests().pop().unwrap();
        assert_eq!(seen.head.header("content-type"), Some(content_type));
    }
}
