//! What a hostile client can do with HTTP/2 that no library does: floods that cost it little, headers that become
//! something else in HTTP/1.1, and answers that nobody takes. Others are served meanwhile, and nothing is kept.

use std::time::Duration;

use flexinfer_gateway::parts::Limits;
use flexinfer_testkit::client::Client;
use flexinfer_testkit::eventually;
use flexinfer_testkit::h2_frames::{END_HEADERS, END_STREAM, Frame, Frames, Kind, block};
use flexinfer_testkit::origin::{Action, Origin, answer};
use tokio::time::timeout;

use crate::world::{BOUND, World, limits, model};

const CHAT: &str = "/v1/chat/completions";
const ASK: &[u8] = br#"{"model":"m"}"#;
const CANCEL: u32 = 8;

fn post<'a>(path: &'a str, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let head = [(":method", "POST"), (":scheme", "http"), (":authority", "g"), (":path", path)];
    [&head[..], more].concat()
}

async fn world(limits: Limits) -> (Origin, World) {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::with(engine.address, vec![model("m", None)], limits, 1 << 30);
    (engine, world)
}

async fn is_served(world: &World) -> bool {
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, ASK).await.unwrap();
    client.answer().await.unwrap().status() == 200
}

/// Sends what may be cut off at any moment; how many of `pieces` could be sent.
async fn flood(client: &mut Frames, pieces: usize, piece: impl Fn(usize) -> Vec<Frame>) -> usize {
    for number in 0..pieces {
        if client.send(&piece(number)).await.is_err() {
            return number;
        }
    }
    pieces
}

#[tokio::test]
async fn requests_that_are_taken_back_at_once_leave_nothing_behind() {
    let (_engine, world) = world(limits()).await;
    let mut client = Frames::connect(world.address).await.unwrap();
    flood(&mut client, 5000, |number| {
        let stream = u32::try_from(2 * number + 1).unwrap();
        let headers = post(CHAT, &[("x-model-id", "m"), ("content-length", "2")]);
        vec![Frame::headers(stream, 0, &headers), Frame::reset(stream, CANCEL)]
    })
    .await;
    assert!(is_served(&world).await);
    drop(client);
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn headers_without_an_end_are_cut_off() {
    let (engine, world) = world(limits()).await;
    let mut client = Frames::connect(world.address).await.unwrap();
    let begun = Frame::new(Kind::HEADERS, END_STREAM, 1, block(&post(CHAT, &[])));
    client.send(&[begun]).await.unwrap();
    let filler = block(&[("x-filler", &"a".repeat(8000))]);
    let sent =
        flood(&mut client, 8000, |_| vec![Frame::new(Kind::CONTINUATION, 0, 1, filler.clone())]);
    assert!(timeout(4 * BOUND, sent).await.unwrap() < 8000, "64 MB of headers were taken");
    assert!(is_served(&world).await);
    assert_eq!(engine.requests().len(), 1);
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn many_small_headers_in_many_frames_are_cut_off_too() {
    let (engine, world) = world(limits()).await;
    let mut client = Frames::connect(world.address).await.unwrap();
    let begun = Frame::new(Kind::HEADERS, END_STREAM, 1, block(&post(CHAT, &[])));
    client.send(&[begun]).await.unwrap();
    let sent = flood(&mut client, 200_000, |_| {
        vec![Frame::new(Kind::CONTINUATION, 0, 1, block(&[("x", "y")]))]
    });
    assert!(timeout(4 * BOUND, sent).await.unwrap() < 200_000, "a frame without an end");
    assert!(is_served(&world).await);
    assert_eq!(engine.requests().len(), 1);
}

#[tokio::test]
async fn pieces_of_a_body_that_carry_nothing_do_not_hold_it_open() {
    let hasty = Limits { body_deadline: Duration::from_millis(500), ..limits() };
    let (engine, world) = world(hasty).await;
    let mut client = Frames::connect(world.address).await.unwrap();
    client.send(&[Frame::headers(1, 0, &post(CHAT, &[]))]).await.unwrap();
    let told = async {
        loop {
            client.send(&vec![Frame::data(1, 0, b""); 100]).await.ok()?;
            if let Ok(frame) = timeout(Duration::from_millis(1), client.next()).await {
                let frame = frame?;
                if frame.kind == Kind::HEADERS || frame.kind == Kind::GOAWAY {
                    return Some(frame);
                }
            }
        }
    };
    // Refused for being late, or for the flood.
    let _ = timeout(2 * BOUND, told).await.expect("it goes on for ever");
    assert!(is_served(&world).await);
    drop(client);
    assert_eq!(engine.requests().len(), 1);
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn an_answer_that_nobody_takes_gives_its_slot_back() {
    let long = answer(200, &[], &vec![b'x'; 4 << 20]);
    let engine = Origin::start(move |_| vec![Action::Write(long.clone())]).await.unwrap();
    let hasty = Limits { silence: Duration::from_millis(500), ..limits() };
    let world = World::with(engine.address, vec![model("m", None)], hasty, 1 << 30);
    let mut client = Frames::connect(world.address).await.unwrap();
    // A window of nothing: not a byte of the answer may be sent.
    let no_window = Frame::new(Kind::SETTINGS, 0, 0, [0, 4, 0, 0, 0, 0]);
    let ask = [no_window, Frame::headers(1, 0, &post(CHAT, &[])), Frame::data(1, END_STREAM, ASK)];
    client.send(&ask).await.unwrap();
    assert!(eventually(BOUND, || engine.begun() == 1).await);
    assert!(eventually(BOUND, || world.at_rest()).await, "it is held for ever over HTTP/2");
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, ASK).await.unwrap();
    assert!(eventually(BOUND, || engine.begun() == 2).await);
    assert!(eventually(BOUND, || world.at_rest()).await, "it is held for ever over HTTP/1.1");
}

#[tokio::test]
async fn http_02_what_http2_lets_a_client_say_does_not_become_two_requests_in_http1() {
    let (engine, world) = world(limits()).await;
    let smuggled = "x\r\nContent-Length: 0\r\n\r\nGET /admin HTTP/1.1\r\nHost: g";
    let split = format!("/model/m/x HTTP/1.1\r\n{smuggled}");
    let hostile = [
        post(CHAT, &[("x-a", smuggled)]),
        post(CHAT, &[("x-a\r\nx-b", "c")]),
        post(CHAT, &[("x-a: b\r\nx-c", "d")]),
        post(CHAT, &[("transfer-encoding", "chunked")]),
        post(CHAT, &[("content-length", "3")]),
        post(CHAT, &[("content-length", "13"), ("content-length", "14")]),
        post(CHAT, &[("connection", "upgrade"), ("upgrade", "h2c")]),
        post(CHAT, &[("X-Upper", "case")]),
        post(CHAT, &[("", "nameless")]),
        post(CHAT, &[(":path", "/twice")]),
        post(CHAT, &[("host", "elsewhere"), ("host", "g")]),
        post(&split, &[("x-model-id", "m")]),
        post("/model/m/a b", &[]),
        post("model/m/relative", &[]),
    ];
    for headers in hostile {
        let mut client = Frames::connect(world.address).await.unwrap();
        let frames = [Frame::headers(1, 0, &headers), Frame::data(1, END_STREAM, ASK)];
        client.send(&frames).await.unwrap();
        // Refused or not: it ends, and what an engine sees is one request that can be read in one way.
        let ended = async {
            while let Some(frame) = client.next().await {
                if frame.ends() || matches!(frame.kind, Kind::RST_STREAM | Kind::GOAWAY) {
                    return;
                }
            }
        };
        timeout(BOUND, ended).await.unwrap_or_else(|_| panic!("no end of {headers:?}"));
    }
    assert!(eventually(BOUND, || world.at_rest()).await);
    assert!(is_served(&world).await);
    assert_eq!(engine.faults(), []);
    for seen in engine.requests() {
        assert!(seen.complete && seen.body == ASK, "{:?}", seen.head);
        assert_eq!(seen.head.header("content-length"), Some("13"), "{:?}", seen.head);
        assert!(!seen.head.target().contains("admin"), "{:?}", seen.head);
        for name in ["transfer-encoding", "upgrade", "x-b", "x-c"] {
            assert_eq!(seen.head.header(name), None, "{:?}", seen.head);
        }
        assert!(seen.head.count("host") == 1, "{:?}", seen.head);
    }
}

#[tokio::test]
async fn frames_that_belong_nowhere_end_the_connection_and_nothing_else() {
    let (engine, world) = world(limits()).await;
    let head = || Frame::headers(1, 0, &post(CHAT, &[]));
    let nowhere = [
        vec![Frame::data(1, 0, b"before any headers")],
        vec![Frame::data(0, 0, b"on no stream")],
        vec![head(), Frame::headers(2, 0, &post(CHAT, &[]))],
        vec![Frame::new(Kind::HEADERS, 0, 1, block(&post(CHAT, &[]))), Frame::data(1, 0, ASK)],
        vec![Frame::new(Kind::CONTINUATION, END_HEADERS, 1, block(&post(CHAT, &[])))],
        vec![head(), Frame::new(Kind::WINDOW_UPDATE, 0, 1, [0, 0, 0, 0])],
        vec![head(), Frame::new(Kind::WINDOW_UPDATE, 0, 0, [0x7f, 0xff, 0xff, 0xff])],
        vec![Frame::new(Kind::SETTINGS, 0, 0, [0, 5, 0, 0, 0, 1])],
        vec![Frame::new(Kind::PING, 0, 0, [1])],
        vec![Frame::new(Kind::HEADERS, END_HEADERS, 1, [0xff; 64])],
        vec![Frame::new(Kind::DATA, 0, 1, vec![0; 1 << 20])],
    ];
    for frames in nowhere {
        let mut client = Frames::connect(world.address).await.unwrap();
        let _ = client.send(&frames).await;
        let kinds: Vec<_> = frames.iter().map(|frame| (frame.kind, frame.stream)).collect();
        let ended = async {
            while let Some(frame) = client.next().await {
                if matches!(frame.kind, Kind::RST_STREAM | Kind::GOAWAY) {
                    return;
                }
            }
        };
        timeout(BOUND, ended).await.unwrap_or_else(|_| panic!("nothing is said of {kinds:?}"));
        assert!(is_served(&world).await);
    }
    assert!(engine.requests().iter().all(|seen| seen.body == ASK));
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn nobody_opens_a_tunnel_over_http2() {
    let (engine, world) = world(limits()).await;
    let tunnel = vec![(":method", "CONNECT"), (":authority", "internal:22")];
    let extended = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":authority", "g"),
        (":path", "/model/m/ws"),
    ];
    for headers in [tunnel, extended.to_vec()] {
        let mut client = Frames::connect(world.address).await.unwrap();
        client.send(&[Frame::headers(1, 0, &headers)]).await.unwrap();
        let ended = async {
            while let Some(frame) = client.next().await {
                if frame.ends() || matches!(frame.kind, Kind::RST_STREAM | Kind::GOAWAY) {
                    return;
                }
            }
        };
        timeout(BOUND, ended).await.unwrap_or_else(|_| panic!("{headers:?} is open"));
    }
    assert_eq!(engine.connections(), 0);
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn crumbs_of_a_cookie_reach_an_engine_of_http1_as_one() {
    let (engine, world) = world(limits()).await;
    let mut client = Frames::connect(world.address).await.unwrap();
    let headers = post(CHAT, &[("cookie", "a=1"), ("cookie", "b=2"), ("cookie", "c=3")]);
    client.send(&[Frame::headers(1, 0, &headers), Frame::data(1, END_STREAM, ASK)]).await.unwrap();
    assert_eq!(timeout(BOUND, client.ended()).await.unwrap(), Some(1));
    let seen = engine.requests().pop().unwrap();
    assert_eq!(seen.head.count("cookie"), 1, "{:?}", seen.head);
    assert_eq!(seen.head.header("cookie"), Some("a=1; b=2; c=3"));
}

#[tokio::test]
async fn questions_and_settings_without_an_end_hold_nobody_else_up() {
    let (engine, world) = world(limits()).await;
    for frame in [Frame::new(Kind::PING, 0, 0, [0; 8]), Frame::new(Kind::SETTINGS, 0, 0, [])] {
        let mut client = Frames::connect(world.address).await.unwrap();
        // Its own answers are never read: it is cut off, or may send no more.
        let sent = flood(&mut client, 100_000, |_| vec![frame.clone()]);
        let _ = timeout(Duration::from_secs(5), sent).await;
        assert!(is_served(&world).await, "{frame:?}");
    }
    assert_eq!(engine.requests().len(), 2);
    assert!(eventually(BOUND, || world.at_rest()).await);
}
