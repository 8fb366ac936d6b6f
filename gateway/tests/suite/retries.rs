//! What the engine cannot have begun is tried again; everything else is answered once.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use flexinfer_core::routing::Strategy;
use flexinfer_gateway::parts::Limits;
use flexinfer_testkit::client::{Answer, Client};
use flexinfer_testkit::eventually;
use flexinfer_testkit::origin::{Action, Origin, answer};

use crate::form_bodies::refusing_early;
use crate::world::{BOUND, World, limits, model};

const CHAT: &str = "/v1/chat/completions";

fn body(size: usize) -> Vec<u8> {
    let mut body = br#"{"model":"m","prompt":""#.to_vec();
    body.resize(size, b'x');
    body.extend_from_slice(br#""}"#);
    body
}

/// An address that nobody listens on.
pub(crate) fn nobody() -> SocketAddr {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap()
}

#[tokio::test]
async fn route_02_a_kept_connection_that_the_engine_closed_is_replaced_once() {
    for size in [100, 65_600, 2 << 20] {
        // The second request of a connection finds it reset before a byte of an answer.
        let engine = Origin::start(|seen| match seen.index {
            0 => vec![Action::Write(answer(200, &[], b"{}"))],
            _ => vec![Action::Reset],
        })
        .await
        .unwrap();
        let world = World::new(engine.address, vec![model("m", Some("engine-name"))]);
        let mut client = Client::connect(world.address).await.unwrap();
        for _ in 0..2 {
            client.post(CHAT, &body(size)).await.unwrap();
            assert_eq!(client.answer().await.unwrap().status(), 200, "{size}");
        }
        let seen = engine.requests();
        assert_eq!(seen.len(), 3, "one reset, one retry");
        assert!(seen[1].body == seen[2].body, "the retry sends the same body");
        assert_eq!((engine.connections(), world.desk.booked(), world.desk.rebooked()), (2, 2, 0));
        assert!(eventually(BOUND, || world.at_rest()).await);
    }
}

/// The engine ended before it answered, and nobody is to try that again.
fn assert_broken_off(answer: &Answer) {
    let code = answer.json()["error"]["code"].as_str().map(str::to_owned);
    let told = (answer.status(), code.as_deref(), answer.head.header("x-should-retry"));
    assert_eq!(told, (502, Some("bad_gateway"), Some("false")), "{}", answer.text());
}

#[tokio::test]
async fn route_02_an_engine_that_worked_for_a_while_on_a_kept_connection_is_not_asked_twice() {
    for path in [CHAT, "/v1/embeddings"] {
        let other = Origin::answering("{}").await.unwrap();
        let engine = Origin::start(|seen| match seen.index {
            0 => vec![Action::Write(answer(200, &[], b"{}"))],
            _ => vec![Action::Reset],
        })
        .await
        .unwrap();
        // Whatever ends comes too late for a connection that was closed before.
        let limits = Limits { stale: Duration::ZERO, ..limits() };
        let world = World::with(engine.address, vec![model("m", None)], limits, 1 << 30);
        world.desk.set_spare(other.address);
        let mut client = Client::connect(world.address).await.unwrap();
        client.post(path, &body(100)).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 200);
        client.post(path, &body(100)).await.unwrap();
        assert_broken_off(&client.answer().await.unwrap());
        assert_eq!((engine.connections(), engine.requests().len()), (1, 2), "{path}");
        assert_eq!(other.requests().len(), 0, "what killed one engine went to the next");
        assert!(eventually(BOUND, || world.at_rest()).await);
    }
}

/// Answers one request, and is gone when the next one arrives on the connection that was kept.
fn gone_with_its_second_request() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        drop(listener);
        let (mut request, mut some) = (Vec::new(), [0; 4096]);
        while !request.ends_with(b"}") {
            let read = client.read(&mut some).unwrap();
            request.extend_from_slice(&some[..read]);
        }
        client.write_all(&answer(200, &[], b"{}")).unwrap();
        let _ = client.read(&mut some);
    });
    address
}

/// It may have ended because of this very request, which would end the next one too.
#[tokio::test]
async fn route_02_what_an_engine_was_gone_with_on_a_kept_connection_is_not_sent_to_another() {
    let other = Origin::answering("{}").await.unwrap();
    let world = World::new(gone_with_its_second_request(), vec![model("m", None)]);
    world.desk.set_spare(other.address);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, &body(100)).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    client.post(CHAT, &body(100)).await.unwrap();
    assert_broken_off(&client.answer().await.unwrap());
    assert_eq!((other.requests().len(), world.desk.rebooked()), (0, 0));
    assert!(eventually(BOUND, || world.at_rest()).await);
}

/// That it takes a connection and says so shows that the request has not ended it.
#[tokio::test]
async fn route_02_an_engine_that_is_busy_on_the_connection_in_place_of_a_kept_one_is_passed_over() {
    let other = Origin::answering("{}").await.unwrap();
    let engine = Origin::start(|seen| match (seen.connection, seen.index) {
        (0, 0) => vec![Action::Write(answer(200, &[], b"{}"))],
        (0, _) => vec![Action::Reset],
        _ => vec![Action::Write(answer(503, &[("Retry-After", "1")], b"{}"))],
    })
    .await
    .unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    world.desk.spread(Strategy::RoundRobin, &[engine.address]);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, &body(100)).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    world.desk.spread(Strategy::RoundRobin, &[engine.address, other.address]);
    let mut asked = 0;
    while engine.requests().len() < 3 {
        assert!(asked < 10, "the turn never came to the engine");
        asked += 1;
        client.post(CHAT, &body(100)).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 200);
    }
    assert_eq!((engine.requests().len(), other.requests().len()), (3, asked));
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn an_engine_that_may_have_begun_is_not_asked_twice() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let engine = Origin::start(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        vec![Action::Reset]
    })
    .await
    .unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, &body(100)).await.unwrap();
    let answer = client.answer().await.unwrap();
    assert_eq!(
        (answer.status(), answer.json()["error"]["code"].as_str()),
        (502, Some("bad_gateway"))
    );
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn a_half_answered_head_on_a_kept_connection_is_not_asked_twice() {
    let engine = Origin::start(|seen| match seen.index {
        0 => vec![Action::Write(answer(200, &[], b"{}"))],
        _ => vec![Action::Write(b"HTTP/1.1 200 O".to_vec()), Action::Close],
    })
    .await
    .unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, &body(100)).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    client.post(CHAT, &body(100)).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 502);
    assert_eq!(engine.requests().len(), 2);
}

#[tokio::test]
async fn an_engine_that_takes_no_connection_is_replaced_by_another() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(nobody(), vec![model("m", None)]);
    world.desk.set_spare(engine.address);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, &body(70_000)).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    assert_eq!((engine.requests().len(), world.desk.rebooked()), (1, 1));
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn no_engine_at_all_is_502_after_the_tries_that_are_allowed() {
    let world = World::new(nobody(), vec![model("m", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, &body(100)).await.unwrap();
    let answer = client.answer().await.unwrap();
    assert_eq!(
        (answer.status(), answer.json()["error"]["code"].as_str()),
        (502, Some("bad_gateway"))
    );
    assert_eq!(world.desk.rebooked(), 1);
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn an_answer_that_breaks_off_breaks_off_for_the_client_too() {
    let begun =
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{\"a\"";
    let engine =
        Origin::start(move |_| vec![Action::Write(begun.to_vec()), Action::Reset]).await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, &body(100)).await.unwrap();
    let answer = client.answer().await;
    assert!(answer.is_err() || answer.is_ok_and(|answer| !answer.complete), "looks complete");
    assert_eq!(engine.requests().len(), 1);
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn an_early_refusal_of_a_long_body_reaches_the_client() {
    let engine = refusing_early().await;
    let world = World::new(engine.address, vec![model("m", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, &body(8 << 20)).await.unwrap();
    let answer = client.answer().await.unwrap();
    assert_eq!((answer.status(), answer.text().as_str()), (413, "{\"engine\":1}"));
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn an_engine_that_stays_silent_is_504_and_one_that_talks_nonsense_502() {
    let hanging = Origin::start(|_| vec![Action::Hang]).await.unwrap();
    let babbling =
        Origin::start(|_| vec![Action::Write(b"SSH-2.0-engine\r\n\r\n".to_vec())]).await.unwrap();
    let short = Duration::from_millis(200);
    let impatient = Limits { first_byte: short, silence: short, ..limits() };
    for (engine, status, code) in [(&hanging, 504, "timeout"), (&babbling, 502, "bad_gateway")] {
        let world = World::with(engine.address, vec![model("m", None)], impatient, 1 << 30);
        let mut client = Client::connect(world.address).await.unwrap();
        client.post(CHAT, &body(100)).await.unwrap();
        let answer = client.answer().await.unwrap();
        assert_eq!(
            (answer.status(), answer.json()["error"]["code"].as_str()),
            (status, Some(code))
        );
        assert_eq!(answer.head.header("x-should-retry"), Some("false"), "ROUTE-03");
        assert!(eventually(BOUND, || world.at_rest()).await);
    }
}

#[tokio::test]
async fn route_03_a_client_that_gives_up_and_tries_again_has_one_engine_at_work() {
    let engine = Origin::start(|_| vec![Action::Hang]).await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    for tries in 1..=3 {
        let mut client = Client::connect(world.address).await.unwrap();
        client.post(CHAT, &body(100)).await.unwrap();
        assert!(eventually(BOUND, || engine.begun() == tries).await);
        drop(client);
        assert!(eventually(BOUND, || engine.open_connections() == 0).await, "still at work");
    }
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn an_engine_may_take_less_time_to_begin_than_it_may_be_silent_later() {
    let engine = Origin::start(|_| vec![Action::Hang]).await.unwrap();
    let impatient = Limits { first_byte: Duration::from_millis(200), ..limits() };
    let world = World::with(engine.address, vec![model("m", None)], impatient, 1 << 30);
    for size in [100, 1 << 20] {
        let mut client = Client::connect(world.address).await.unwrap();
        client.post(CHAT, &body(size)).await.unwrap();
        let answer = client.answer().await.unwrap();
        assert_eq!((answer.status(), &answer.json()["error"]["code"]), (504, &"timeout".into()));
    }
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(b"GET /model/m/anything HTTP/1.1\r\nHost: g\r\n\r\n").await.unwrap();
    assert_eq!(client.answer_to("GET").await.unwrap().status(), 504);
    assert!(eventually(BOUND, || world.at_rest() && engine.open_connections() == 0).await);
}

#[tokio::test]
async fn a_connection_is_kept_after_its_engine_was_watched() {
    let engine = Origin::answering("{}").await.unwrap();
    for (first_byte, silence) in [(BOUND / 2, BOUND), (BOUND, BOUND / 2)] {
        let limits = Limits { first_byte, silence, ..limits() };
        let world = World::with(engine.address, vec![model("m", None)], limits, 1 << 30);
        let mut client = Client::connect(world.address).await.unwrap();
        for size in [100, 1 << 20, 100] {
            client.post(CHAT, &body(size)).await.unwrap();
            assert_eq!(client.answer().await.unwrap().status(), 200);
        }
        assert!(eventually(BOUND, || world.at_rest()).await);
    }
}
