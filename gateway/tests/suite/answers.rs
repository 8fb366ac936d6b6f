//! What an engine answers goes to the client as it is: its bytes, its type, its compression, as soon as
//! it comes.

use std::sync::Arc;
use std::time::Duration;

use flexinfer_core::fleet::Served;
use flexinfer_gateway::parts::Limits;
use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::eventually;
use flexinfer_testkit::h2_client::{End, H2Client, Upload};
use flexinfer_testkit::origin::{Action, Origin, answer, chunked_answer};
use tokio::sync::Notify;

use crate::world::{BOUND, World, limits, model};

const CHAT: &str = "/v1/chat/completions";
const ASK: &[u8] = br#"{"model":"m"}"#;
const STREAM: &[u8] = br#"{"model":"m","stream":true}"#;

/// What gzip makes of `{}`; nobody here has to read it.
const GZIP: &[u8] =
    &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xab, 0xae, 5, 0, 0x43, 0xbf, 0xa6, 0xa3, 2, 0, 0, 0];

async fn world(engine: &Origin) -> (World, Client) {
    // Whatever it is asked for, nobody knows that it does not serve it.
    let model = Served::new(model("m", None).effective, "external", "", 0);
    let world = World::new(engine.address, vec![model]);
    let client = Client::connect(world.address).await.unwrap();
    (world, client)
}

#[tokio::test]
async fn body_13_a_compressed_answer_keeps_its_bytes_and_its_header() {
    let events = "text/event-stream";
    for (status, content_type) in
        [(200, "application/json"), (400, "application/json"), (200, events)]
    {
        let headers = [("Content-Encoding", "gzip"), ("Content-Type", content_type)];
        let answered = answer(status, &headers, GZIP);
        let engine = Origin::start(move |_| vec![Action::Write(answered.clone())]).await.unwrap();
        let (_world, mut client) = world(&engine).await;
        for accepted in [&[("Accept-Encoding", "gzip")][..], &[]] {
            client.send(&request("POST", CHAT, accepted, ASK)).await.unwrap();
            let answer = client.answer().await.unwrap();
            assert_eq!(answer.status(), status);
            assert_eq!(answer.head.header("content-encoding"), Some("gzip"));
            assert_eq!(answer.body, GZIP);
        }
        let asked = engine.requests();
        // Its tokens are to be counted; this engine compresses all the same.
        assert_eq!(asked[0].head.header("accept-encoding"), Some("identity"));
        assert_eq!(asked[1].head.header("accept-encoding"), None, "nobody asked for it");
    }
}

#[tokio::test]
async fn body_25_every_message_has_exactly_one_framing() {
    let text = br#"{"model":"its-own-name"}"#;
    let by_length = answer(200, &[], text);
    let by_chunks = chunked_answer(200, &[], text, &[3]);
    for answered in [by_length, by_chunks] {
        let engine = Origin::start(move |_| vec![Action::Write(answered.clone())]).await.unwrap();
        let world = World::new(engine.address, vec![model("m", Some("its-own-name"))]);
        let mut client = Client::connect(world.address).await.unwrap();
        client.post(CHAT, ASK).await.unwrap();
        let answer = client.answer().await.unwrap();
        let framings = |name| answer.head.count(name);
        assert_eq!(framings("content-length") + framings("transfer-encoding"), 1);
        assert_eq!(answer.body, text);
        let mut client = H2Client::connect(world.address).await.unwrap();
        let answer = client.request(&Upload::post(CHAT, ASK)).await.unwrap();
        assert!(!answer.headers.contains_key("transfer-encoding"));
        let length = answer.headers.get("content-length");
        assert!(length.is_none_or(|length| *length == text.len().to_string()), "{length:?}");
        assert_eq!(answer.body, text);
        for asked in engine.requests() {
            assert_eq!(asked.head.count("content-length"), 1);
            assert_eq!(asked.head.count("transfer-encoding"), 0);
        }
    }
}

#[tokio::test]
async fn multi_13_sound_and_pictures_arrive_as_they_are_made() {
    let bytes: Vec<u8> = (0..4000_u32).map(|at| (at * 31 % 251) as u8).collect();
    let next = Arc::new(Notify::new());
    let signal = Arc::clone(&next);
    let pieces: Vec<Vec<u8>> = bytes.chunks(400).map(<[u8]>::to_vec).collect();
    let wav = pieces.clone();
    let engine = Origin::start(move |_| {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\nTransfer-Encoding: chunked\r\n\r\n";
        let mut script = vec![Action::Write(head.into())];
        for piece in &wav {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(piece);
            chunk.extend_from_slice(b"\r\n");
            script.extend([Action::Wait(Arc::clone(&signal)), Action::Write(chunk)]);
        }
        script.push(Action::Write(b"0\r\n\r\n".to_vec()));
        script
    })
    .await
    .unwrap();
    let (_world, mut client) = world(&engine).await;
    client.post("/v1/audio/speech", br#"{"model":"m","input":"hello","voice":"a"}"#).await.unwrap();
    let head = client.head().await.unwrap();
    assert_eq!((head.status(), head.header("content-type")), (200, Some("audio/wav")));
    for piece in pieces {
        next.notify_one();
        assert_eq!(client.chunk().await.unwrap(), Some(piece), "held back or changed");
    }
    assert_eq!(client.chunk().await.unwrap(), None);
}

#[tokio::test]
async fn sse_10_an_answers_head_leaves_before_its_first_event() {
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let script = vec![Action::Write(head.into()), Action::Hang];
    let engine = Origin::start(move |_| script.clone()).await.unwrap();
    let (world, mut client) = world(&engine).await;
    client.post(CHAT, STREAM).await.unwrap();
    assert_eq!(client.head().await.unwrap().status(), 200);
    let mut client = H2Client::connect(world.address).await.unwrap();
    let mut pending = client.begin(&Upload::post(CHAT, STREAM)).await.unwrap();
    pending.send(STREAM, 1 << 14, Some(End::WithLastBytes)).await.unwrap();
    let (status, _streamed) = pending.head().await.unwrap();
    assert_eq!(status, 200);
}

#[tokio::test]
async fn sse_12_events_of_any_shape_pass_unchanged() {
    let events = [
        r#"data: {"usage":{}}"#,
        r#"data: {"usage":{"prompt_tokens":"many"}}"#,
        r#"data: {"choices":[]}"#,
        r#"data: {"choices":null}"#,
        "data: {}",
        "data: []",
        "data: null",
        "data: not json",
        "event: error",
        ": a comment",
        "data:",
        "id: 7\nretry: 10",
    ];
    let text = events.join("\n\n") + "\n\n";
    let headers = [("Content-Type", "text/event-stream")];
    let answered = chunked_answer(200, &headers, text.as_bytes(), &[5, 50, 1]);
    let engine = Origin::start(move |_| vec![Action::Write(answered.clone())]).await.unwrap();
    let (_world, mut client) = world(&engine).await;
    for _ in 0..2 {
        client.post(CHAT, STREAM).await.unwrap();
        let answer = client.answer().await.unwrap();
        assert_eq!((answer.text(), answer.complete), (text.clone(), true));
    }
}

#[tokio::test]
async fn sse_13_a_stream_that_goes_on_is_never_cut_and_a_silent_one_is() {
    let silence = Duration::from_millis(1500);
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let next = Arc::new(Notify::new());
    let signal = Arc::clone(&next);
    let engine = Origin::start(move |_| {
        let mut script = vec![Action::Write(head.into())];
        for _ in 0..8 {
            script.push(Action::Wait(Arc::clone(&signal)));
            script.push(Action::Write(b"9\r\ndata: 1\n\n\r\n".to_vec()));
        }
        script.push(Action::Hang);
        script
    })
    .await
    .unwrap();
    let patient = Limits { silence, body_deadline: silence, ..limits() };
    let world = World::with(engine.address, vec![model("m", None)], patient, 1 << 20);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, STREAM).await.unwrap();
    assert_eq!(client.head().await.unwrap().status(), 200);
    for _ in 0..8 {
        // Eight pauses are longer than any limit; each is far shorter than the silence that may be.
        tokio::time::sleep(silence / 5).await;
        next.notify_one();
        assert!(client.chunk().await.unwrap().is_some());
    }
    let mut rest = Vec::new();
    while let Ok(Some(chunk)) = client.chunk().await {
        rest.extend_from_slice(&chunk);
    }
    let rest = String::from_utf8_lossy(&rest);
    assert!(rest.contains("error") && !rest.contains("[DONE]"), "it claims to be whole: {rest}");
    assert!(eventually(BOUND, || engine.left_early() == 1).await, "the engine is not told");
}

#[tokio::test]
async fn interim_answers_of_an_engine_are_no_answers() {
    let interim = b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n".repeat(3);
    let engine = Origin::start(move |_| {
        vec![Action::Write(interim.clone()), Action::Write(answer(200, &[], b"{\"final\":1}"))]
    })
    .await
    .unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    for _ in 0..2 {
        client.post(CHAT, ASK).await.unwrap();
        let last = loop {
            let head = client.head().await.unwrap();
            if head.status() >= 200 {
                break head;
            }
            assert_eq!((head.status(), head.count("content-length")), (103, 0), "{head:?}");
        };
        assert_eq!((last.status(), last.header("content-length")), (200, Some("11")));
        while client.unread().len() < 11 {
            let ended = client.rest(Duration::from_millis(20)).await;
            assert_eq!(ended, None, "it ended");
        }
        client = Client::connect(world.address).await.unwrap();
    }
    let mut client = H2Client::connect(world.address).await.unwrap();
    let answer = client.request(&Upload::post(CHAT, ASK)).await.unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (200, &b"{\"final\":1}"[..]));
    assert_eq!(engine.requests().len(), 3);
    assert!(eventually(BOUND, || world.at_rest()).await);
}
