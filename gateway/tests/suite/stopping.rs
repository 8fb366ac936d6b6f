//! A gateway that stops takes nothing new and finishes everything it has begun, whatever it is spoken in.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use flexinfer_gateway::server::Patience;
use flexinfer_testkit::at_head::AtHead;
use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::h2_client::{End, H2Client, Upload};
use flexinfer_testkit::origin::{Action, Origin, answer};
use flexinfer_testkit::{eventually, eventually_async};
use tokio::sync::Notify;

use crate::world::{BOUND, World, model};

const ASK: &[u8] = br#"{"model":"m"}"#;
const AT_ONCE: Patience =
    Patience { drain_delay: Duration::ZERO, in_flight: BOUND, first_request: Duration::ZERO };

/// An engine that begins each answer at once and ends it when its path is told to.
async fn engine(paths: [&'static str; 3]) -> (Origin, HashMap<&'static str, Arc<Notify>>) {
    let ends: HashMap<_, _> =
        paths.into_iter().map(|path| (path, Arc::<Notify>::default())).collect();
    let known = ends.clone();
    let engine = Origin::start(move |seen| {
        let Some(end) = known.get(seen.head.target()) else {
            return vec![Action::Write(answer(200, &[], b"{}"))];
        };
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        let begun = [head, "9\r\ndata: 1\n\n\r\n"].concat();
        vec![
            Action::Write(begun.into_bytes()),
            Action::Wait(Arc::clone(end)),
            Action::Write(b"9\r\ndata: 2\n\n\r\n0\r\n\r\n".to_vec()),
        ]
    });
    (engine.await.unwrap(), ends)
}

#[tokio::test]
async fn streams_waiting_requests_and_both_protocols_are_finished_and_counted() {
    let (engine, ends) = engine(["/one", "/two", "/three"]).await;
    let World { address, desk, lifecycle, gateway, .. } =
        World::new(engine.address, vec![model("m", None)]);
    let mut one = Client::connect(address).await.unwrap();
    one.post("/model/m/one", ASK).await.unwrap();
    assert_eq!(one.head().await.unwrap().status(), 200);
    let mut h2 = H2Client::connect(address).await.unwrap();
    let mut streams = Vec::new();
    for path in ["/model/m/two", "/model/m/three"] {
        let mut pending = h2.begin(&Upload::post(path, ASK)).await.unwrap();
        pending.send(ASK, 1000, Some(End::WithLastBytes)).await.unwrap();
        let (status, mut streamed) = pending.head().await.unwrap();
        assert_eq!(status, 200);
        assert!(streamed.frame().await.unwrap().is_some());
        streams.push(streamed);
    }
    desk.close();
    let mut waiting = Client::connect(address).await.unwrap();
    waiting.post("/model/m/plain", ASK).await.unwrap();
    assert!(eventually(BOUND, || desk.waiting() == 1).await);
    assert_eq!(lifecycle.in_flight(), 4);

    let stopping = tokio::spawn(gateway.stop(AT_ONCE));
    let refused = || async { Client::connect(address).await.is_err() };
    assert!(eventually_async(BOUND, refused).await, "the listener is still open");
    assert_eq!(lifecycle.in_flight(), 4, "something was cut off");
    desk.open();
    assert_eq!(waiting.answer().await.unwrap().status(), 200);
    for end in ends.values() {
        end.notify_one();
    }
    assert_eq!(one.chunk().await.unwrap().as_deref(), Some(&b"data: 1\n\n"[..]));
    assert_eq!(one.chunk().await.unwrap().as_deref(), Some(&b"data: 2\n\n"[..]));
    assert_eq!(one.chunk().await.unwrap(), None);
    for mut streamed in streams {
        assert_eq!(streamed.frame().await.unwrap().as_deref(), Some(&b"data: 2\n\n"[..]));
    }
    assert!(stopping.await.unwrap(), "something was left in flight");
    assert_eq!(lifecycle.in_flight(), 0);
}

#[tokio::test]
async fn an_open_websocket_is_waited_for_and_not_longer_than_it_may() {
    let engine = AtHead::echo().await.unwrap();
    for leaves in [true, false] {
        let World { address, lifecycle, gateway, .. } =
            World::new(engine.address, vec![model("m", None)]);
        let mut client = Client::connect(address).await.unwrap();
        let upgrade = "GET /model/m/socket HTTP/1.1\r\nHost: g\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
        client.send(upgrade.as_bytes()).await.unwrap();
        assert_eq!(client.head().await.unwrap().status(), 101);
        let limit = if leaves { BOUND } else { Duration::from_millis(300) };
        let stopping = tokio::spawn(gateway.stop(Patience { in_flight: limit, ..AT_ONCE }));
        let refused = || async { Client::connect(address).await.is_err() };
        assert!(eventually_async(BOUND, refused).await, "the listener is still open");
        assert_eq!(lifecycle.in_flight(), 1);
        if leaves {
            drop(client);
        }
        assert_eq!(stopping.await.unwrap(), leaves);
    }
}

#[tokio::test]
async fn a_connection_that_was_kept_is_closed_and_one_of_http2_is_told_to_go() {
    let (engine, _) = engine(["/one", "/two", "/three"]).await;
    let World { address, gateway, .. } = World::new(engine.address, vec![model("m", None)]);
    let mut kept = Client::connect(address).await.unwrap();
    kept.send(&request("GET", "/v1/models", &[], b"")).await.unwrap();
    assert_eq!(kept.answer_to("GET").await.unwrap().status(), 200);
    let mut h2 = H2Client::connect(address).await.unwrap();
    let list = Upload { method: "GET", ..Upload::post("/v1/models", b"") };
    assert_eq!(h2.request(&list).await.unwrap().status, 200);
    assert!(gateway.stop(AT_ONCE).await);
    assert_eq!(kept.rest(BOUND).await.expect("it is closed"), b"");
    let ended = || async { H2Client::connect(address).await.is_err() };
    assert!(eventually_async(BOUND, ended).await);
    let refused = h2.request(&list).await.map_or(true, |answer| answer.status == 503);
    assert!(refused, "requests are still taken");
}

/// How a gateway stops that has time for whoever is new.
const FOR_NEWCOMERS: Patience = Patience { first_request: BOUND, ..AT_ONCE };

async fn told_to_come_too_late(client: &mut Client) {
    let answer = client.answer_to("GET").await.unwrap();
    assert_eq!(answer.status(), 503);
    assert!(answer.text().contains("shutting_down"), "{}", answer.text());
    assert_eq!(client.rest(BOUND).await.expect("it is closed"), b"");
}

#[tokio::test]
async fn a_first_request_on_its_way_is_answered_though_its_connection_was_not_accepted_yet() {
    let (engine, _) = engine(["/one", "/two", "/three"]).await;
    let World { address, gateway, .. } = World::new(engine.address, vec![model("m", None)]);
    let connect = |_| {
        // By the system alone: the gateway, on this test's thread, has no turn meanwhile.
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.write_all(&request("GET", "/v1/models", &[], b"")).unwrap();
        stream.set_nonblocking(true).unwrap();
        Client::over(tokio::net::TcpStream::from_std(stream).unwrap())
    };
    let clients: Vec<_> = (0..8).map(connect).collect();
    assert!(gateway.stop(FOR_NEWCOMERS).await);
    for mut client in clients {
        told_to_come_too_late(&mut client).await;
    }
}

#[tokio::test]
async fn a_connection_may_still_send_its_first_request_when_nothing_is_accepted_any_more() {
    let (engine, _) = engine(["/one", "/two", "/three"]).await;
    let World { address, gateway, .. } = World::new(engine.address, vec![model("m", None)]);
    let mut late = Client::connect(address).await.unwrap();
    let stopping = tokio::spawn(gateway.stop(FOR_NEWCOMERS));
    let refused = || async { Client::connect(address).await.is_err() };
    assert!(eventually_async(BOUND, refused).await, "the listener is still open");
    late.send(&request("GET", "/v1/models", &[], b"")).await.unwrap();
    told_to_come_too_late(&mut late).await;
    assert!(stopping.await.unwrap());
}

#[tokio::test]
async fn a_connection_that_sends_nothing_is_closed_and_holds_no_stop_up_for_long() {
    let (engine, _) = engine(["/one", "/two", "/three"]).await;
    let World { address, gateway, .. } = World::new(engine.address, vec![model("m", None)]);
    let mut silent = Client::connect(address).await.unwrap();
    let soon = Patience { first_request: Duration::from_millis(50), ..AT_ONCE };
    assert!(gateway.stop(soon).await);
    assert_eq!(silent.rest(BOUND).await.expect("it is closed"), b"");
}
