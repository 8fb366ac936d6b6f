//! What realtime sessions cost: over raw sockets, since an engine may say anything.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use flexinfer_core::openai::frames::last_words;
use flexinfer_testkit::at_head::{AtHead, SWITCHING};
use flexinfer_testkit::client::Client;
use flexinfer_testkit::eventually;
use flexinfer_testkit::origin::Origin;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;

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

/// An engine that says the next of `answers` whenever it hears something, and how many bytes it has heard. It does not
/// agree to speak where messages may be compressed.
async fn engine(answers: Vec<Vec<u8>>) -> (AtHead, Arc<AtomicUsize>) {
    let counted = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&counted);
    let engine = AtHead::start(move |head, mut socket| {
        let (answers, count) = (answers.clone(), Arc::clone(&count));
        async move {
            if head.header("sec-websocket-extensions").is_some() {
                return Err(io::ErrorKind::Unsupported.into());
            }
            socket.write_all(SWITCHING).await?;
            let mut heard = [0; 1024];
            let mut answers = answers.into_iter();
            loop {
                let length = socket.read(&mut heard).await?;
                if length == 0 {
                    return Ok(());
                }
                count.fetch_add(length, Ordering::SeqCst);
                socket.write_all(&answers.next().unwrap_or_default()).await?;
            }
        }
    });
    (engine.await.unwrap(), counted)
}

async fn open(world: &World) -> Client {
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(HANDSHAKE.as_bytes()).await.unwrap();
    assert_eq!(client.head().await.unwrap().status(), 101);
    client
}

/// A client's message.
const HI: &[u8] = b"\x81\x82\0\0\0\0Hi";
/// A client's own end.
const BYE: &[u8] = b"\x88\x82\0\0\0\0\x03\xe8";
/// The end that a client without tokens is told.
const END: &[u8] = b"\x88\x15\x03\xf0rate_limit_exceeded";

/// What was heard in all, once that is `enough`.
async fn hear(client: &mut Client, enough: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let deadline = Instant::now() + BOUND;
    while !enough(client.unread()) {
        if let Some(all) = client.rest(BOUND / 500).await {
            assert!(enough(&all), "it ended behind {}", String::from_utf8_lossy(&all));
            return all;
        }
        let so_far = String::from_utf8_lossy(client.unread());
        assert!(Instant::now() < deadline, "no more came than {so_far}");
    }
    client.unread().to_vec()
}

/// Says something, and waits until `length` bytes were heard in all.
async fn say(client: &mut Client, length: usize) {
    client.send(HI).await.unwrap();
    hear(client, |heard| heard.len() >= length).await;
}

#[tokio::test]
async fn a_realtime_session_is_charged_for_what_its_engine_tells() {
    let told = [message(r#"{"type":"session.created"}"#), done(1, 2), done(3, 4)];
    let (engine, _) = engine(told.to_vec()).await;
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
    let (engine, _) = engine(vec![done(20, 20), last, message("nor this")]).await;
    let other = Origin::answering("{}").await.unwrap();
    let rules = limited("tokensPerMinute: 100");
    let world = World::ruled(engine.address, vec![model("m", None)], rules);
    let mut client = open(&world).await;
    say(&mut client, done(20, 20).len()).await;
    client.send(HI).await.unwrap();
    let heard = hear(&mut client, |heard| heard.ends_with(END)).await;
    let heard = String::from_utf8_lossy(&heard).into_owned();
    assert!(heard.contains(r#""type":"error""#) && heard.contains("tokens"), "{heard}");
    assert!(!heard.contains("never heard"), "{heard}");
    // It may have been cut off already: the engine has said more.
    let _ = client.send(HI).await;
    let rest = client.rest(BOUND).await.expect("it ends");
    assert!(!String::from_utf8_lossy(&rest).contains("nor this"));
    assert!(eventually(BOUND, || world.at_rest()).await);
    world.desk.set_engine("m", other.address);
    assert_eq!(chat(&world, br#"{"model":"m","max_tokens":1}"#).await.status(), 429);
}

/// An engine that says `first` once it hears something, and then goes on with `more`, each time in a write of its own.
/// How often it has.
async fn talkative(first: Vec<u8>, more: Vec<u8>) -> (AtHead, Arc<AtomicUsize>) {
    let counted = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&counted);
    let engine = AtHead::start(move |_, mut socket| {
        let (first, more, count) = (first.clone(), more.clone(), Arc::clone(&count));
        async move {
            socket.write_all(SWITCHING).await?;
            socket.read_exact(&mut [0; HI.len()]).await?;
            socket.write_all(&first).await?;
            loop {
                socket.write_all(&more).await?;
                count.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    });
    (engine.await.unwrap(), counted)
}

#[tokio::test]
async fn a_realtime_session_is_told_its_end_though_its_engine_goes_on() {
    let last = done(500_000, 500_000);
    let flood = message("never heard").repeat(100_000);
    for (name, first) in [("one by one", last.clone()), ("at once", [last, flood].concat())] {
        let (engine, said) = talkative(first, message("never heard")).await;
        let rules = limited("tokensPerMinute: 100");
        let world = World::ruled(engine.address, vec![model("m", None)], rules);
        let mut client = open(&world).await;
        client.send(HI).await.unwrap();
        let told = hear(&mut client, |heard| heard.ends_with(END)).await;
        let so_far = said.load(Ordering::SeqCst);
        let goes_on = || said.load(Ordering::SeqCst) > so_far + 5;
        assert!(eventually(BOUND, goes_on).await, "{name}: the engine is cut off");
        client.send(BYE).await.unwrap();
        let heard = client.rest(BOUND).await.expect("it ends");
        assert!(heard == told, "{name}: {} bytes", heard.len());
        assert!(eventually(BOUND, || world.at_rest()).await, "{name}");
    }
}

/// Tells a session its end, and how long it goes on then with a client that says these words, one after the other, for
/// ever if `on`.
async fn lasts(name: &str, words: &[&[u8]], on: bool) -> Duration {
    let (engine, heard) = engine(vec![done(500_000, 500_000), message("nor this")]).await;
    let rules = limited("tokensPerMinute: 100");
    let world = World::ruled(engine.address, vec![model("m", None)], rules);
    let mut client = open(&world).await;
    client.send(HI).await.unwrap();
    hear(&mut client, |heard| heard.ends_with(END)).await;
    let since = Instant::now();
    let mut words = words.iter().cycle().take(if on { usize::MAX } else { words.len() });
    let end = loop {
        if let Some(word) = words.next()
            && client.send(word).await.is_err()
        {
            break client.rest(BOUND).await;
        }
        if let Some(rest) = client.rest(Duration::from_millis(100)).await {
            break Some(rest);
        }
        assert!(since.elapsed() < BOUND, "{name}: it goes on for ever");
    };
    let lasted = since.elapsed();
    assert!(!String::from_utf8_lossy(&end.unwrap_or_default()).contains("nor this"), "{name}");
    assert_eq!(heard.load(Ordering::SeqCst), HI.len(), "{name}: the engine hears no more");
    assert!(eventually(BOUND, || world.at_rest()).await, "{name}");
    lasted
}

/// Neither the client nor the engine has to do anything for the end.
#[tokio::test]
async fn a_realtime_session_that_was_told_its_end_is_over_soon() {
    let silent = lasts("silent", &[], false).await;
    for (name, words) in [
        ("polite", &[BYE][..]),
        ("polite at the end of a message", &[&[HI, BYE].concat()]),
        ("polite in pieces", &[&BYE[..3], &BYE[3..]]),
    ] {
        let lasted = lasts(name, words, false).await;
        assert!(lasted * 2 < silent, "{name}: it was cut off after {lasted:?} of {silent:?}");
    }
    // What looks like an end is a mask.
    let (head, masked) = HI.split_at(2);
    let masked = [&[0x88, 0x82], &masked[2..]].concat();
    for (name, words) in [("deaf", &[HI][..]), ("deaf in pieces", &[head, &masked])] {
        let lasted = lasts(name, words, true).await;
        assert!(lasted * 2 > silent, "{name}: it was cut off after {lasted:?} of {silent:?}");
    }
}

/// An engine that hangs up behind its last message takes the end from nobody: a client that is still speaking is not
/// cut off before it had its time to read that.
#[tokio::test]
async fn a_realtime_session_is_told_its_end_though_its_engine_hangs_up() {
    let engine = AtHead::start(|_, mut socket| async move {
        socket.write_all(SWITCHING).await?;
        socket.read_exact(&mut [0; HI.len()]).await?;
        socket.write_all(&done(500_000, 500_000)).await
    });
    let engine = engine.await.unwrap();
    let rules = limited("tokensPerMinute: 100");
    let world = World::ruled(engine.address, vec![model("m", None)], rules);
    let mut client = open(&world).await;
    client.send(HI).await.unwrap();
    let heard = client.rest(BOUND).await.expect("nothing more will come");
    assert!(heard.ends_with(END), "{}", String::from_utf8_lossy(&heard));
    let since = Instant::now();
    while client.send(HI).await.is_ok() {
        assert!(since.elapsed() < BOUND, "it goes on for ever");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (lasted, silent) = (since.elapsed(), lasts("silent", &[], false).await);
    assert!(lasted * 2 > silent, "it was cut off after {lasted:?} of {silent:?}");
    assert!(eventually(BOUND, || world.at_rest()).await);
}

/// An engine that uses up what there is, and breaks off when it is told to.
async fn breaking(off: &Arc<Notify>) -> AtHead {
    let off = Arc::clone(off);
    let engine = AtHead::start(move |_, mut socket| {
        let off = Arc::clone(&off);
        async move {
            socket.write_all(SWITCHING).await?;
            socket.read_exact(&mut [0; HI.len()]).await?;
            socket.write_all(&done(500_000, 500_000)).await?;
            off.notified().await;
            socket.set_zero_linger()
        }
    });
    engine.await.unwrap()
}

/// The time that a client has to read its end is its own: neither a slot is held for it, nor is it given to one that is
/// gone.
#[tokio::test]
async fn a_slot_is_free_once_one_side_of_a_session_that_was_told_its_end_has_broken_off() {
    let silent = lasts("silent", &[], false).await;
    for whose in ["the engine", "the client"] {
        let off = Arc::default();
        let engine = breaking(&off).await;
        let rules = limited("tokensPerMinute: 100");
        let world = World::ruled(engine.address, vec![model("m", None)], rules);
        let mut client = open(&world).await;
        client.send(HI).await.unwrap();
        hear(&mut client, |heard| heard.ends_with(END)).await;
        assert_eq!(world.desk.held(), 1, "{whose}");
        let since = Instant::now();
        let reads = if whose == "the engine" {
            off.notify_one();
            Some(client)
        } else {
            client.reset().unwrap();
            None
        };
        let free = || world.desk.held() == 0 && (reads.is_some() || world.at_rest());
        assert!(eventually(BOUND, free).await, "{whose}");
        let held = since.elapsed();
        assert!(held * 3 < silent, "{whose}: it was held for {held:?} of {silent:?}");
        drop(reads);
        assert!(eventually(BOUND, || world.at_rest()).await, "{whose}");
    }
}

#[tokio::test]
async fn a_realtime_session_whose_engine_tells_no_usage_is_limited_too() {
    let (engine, _) = engine(vec![message("delta").repeat(400)]).await;
    let rules = limited("tokensPerMinute: 100");
    let world = World::ruled(engine.address, vec![model("m", None)], rules);
    let mut client = open(&world).await;
    client.send(HI).await.unwrap();
    let heard = hear(&mut client, |heard| heard.ends_with(END)).await;
    let heard = String::from_utf8_lossy(&heard).matches("delta").count();
    assert!((100..400).contains(&heard), "{heard} messages");
    drop(client);
    assert!(eventually(BOUND, || world.at_rest()).await);
}
