//! What realtime sessions cost: over raw sockets, since an engine may say anything.

use std::io;

use flexinfer_core::openai::frames::last_words;
use flexinfer_testkit::at_head::{AtHead, SWITCHING};
use flexinfer_testkit::client::Client;
use flexinfer_testkit::eventually;
use flexinfer_testkit::origin::Origin;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::limits::{chat, limited};
use crate::world::{BOUND, World, model};

const HANDSHAKE: &str = "GET /v1/realtime?model=m HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer alice\r\n\
    Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n";

/// A message as an engine sends it.
fn message(event: &str) -> Vec<u8> {
    let mut frames = last_words(event.as_bytes(), 1000, "");
    frames.truncate(frames.len() - 4);
    frames
}

fn done(input: u64, output: u64) -> Vec<u8> {
    let usage = format!(r#"{{"input_tokens":{input},"output_tokens":{output}}}"#);
    message(&format!(r#"{{"type":"response.done","response":{{"usage":{usage}}}}}"#))
}

/// An engine that says the next of `answers` whenever it hears something. It does not agree to speak where messages may
/// be compressed.
async fn engine(answers: Vec<Vec<u8>>) -> AtHead {
    AtHead::start(move |head, mut socket| {
        let answers = answers.clone();
        async move {
            if head.header("sec-websocket-extensions").is_some() {
                return Err(io::ErrorKind::Unsupported.into());
            }
            socket.write_all(SWITCHING).await?;
            let mut heard = [0; 1024];
            for answer in answers {
                if socket.read(&mut heard).await? == 0 {
                    return Ok(());
                }
                socket.write_all(&answer).await?;
            }
            while socket.read(&mut heard).await? > 0 {}
            Ok(())
        }
    })
    .await
    .unwrap()
}

async fn open(world: &World) -> Client {
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(HANDSHAKE.as_bytes()).await.unwrap();
    assert_eq!(client.head().await.unwrap().status(), 101);
    client
}

/// Says something, and waits until `length` bytes were heard in all.
async fn say(client: &mut Client, length: usize) {
    client.send(b"\x81\x82\0\0\0\0Hi").await.unwrap();
    while client.unread().len() < length {
        assert_eq!(client.rest(BOUND / 500).await, None, "it ended");
    }
}

#[tokio::test]
async fn a_realtime_session_is_charged_for_what_its_engine_tells() {
    let told = [message(r#"{"type":"session.created"}"#), done(1, 2), done(3, 4)];
    let engine = engine(told.to_vec()).await;
    let other = Origin::answering("{}").await.unwrap();
    let rules = limited("tokensPerMinute: 100");
    let world = World::ruled(engine.address, vec![model("m", None)], rules);
    let mut client = open(&world).await;
    let mut length = 0;
    for told in &told {
        length += told.len();
        say(&mut client, length).await;
    }
    assert_eq!(client.unread(), told.concat(), "nothing is changed");
    drop(client);
    assert!(eventually(BOUND, || world.at_rest()).await);
    world.desk.set_engine("m", other.address);
    let rest = chat(&world, br#"{"model":"m","max_tokens":85}"#).await;
    assert_eq!(rest.status(), 200, "ten of a hundred were used: {}", rest.text());
}

#[tokio::test]
async fn a_realtime_session_ends_when_its_caller_has_no_tokens_left() {
    let last = [done(500_000, 500_000), message("never heard")].concat();
    let engine = engine(vec![done(20, 20), last, message("nor this")]).await;
    let other = Origin::answering("{}").await.unwrap();
    let rules = limited("tokensPerMinute: 100");
    let world = World::ruled(engine.address, vec![model("m", None)], rules);
    let mut client = open(&world).await;
    say(&mut client, done(20, 20).len()).await;
    client.send(b"\x81\x82\0\0\0\0Hi").await.unwrap();
    let end = [&[0x88, 21, 0x03, 0xf0][..], b"rate_limit_exceeded"].concat();
    while !client.unread().ends_with(&end) {
        assert_eq!(client.rest(BOUND / 500).await, None, "it ended without a word");
    }
    let heard = String::from_utf8_lossy(client.unread()).into_owned();
    assert!(heard.contains(r#""type":"error""#) && heard.contains("tokens"), "{heard}");
    assert!(!heard.contains("never heard"), "{heard}");
    // Whoever goes on all the same is cut off at the engine's next word.
    client.send(b"\x81\x82\0\0\0\0Hi").await.unwrap();
    let rest = client.rest(BOUND).await.expect("it ends");
    assert!(!String::from_utf8_lossy(&rest).contains("nor this"));
    assert!(eventually(BOUND, || world.at_rest()).await);
    world.desk.set_engine("m", other.address);
    assert_eq!(chat(&world, br#"{"model":"m","max_tokens":1}"#).await.status(), 429);
}
