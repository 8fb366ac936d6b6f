//! Farewells of HTTP/2 (GOAWAY), of engines and of ours: what was begun is finished, what was not goes elsewhere,
//! and nothing is done twice.

use std::sync::Arc;
use std::time::Duration;

use flexinfer_core::effective::EngineProtocol;
use flexinfer_core::fleet::Served;
use flexinfer_gateway::rules::Rules;
use flexinfer_gateway::server::Patience;
use flexinfer_testkit::client::{Answer, Client};
use flexinfer_testkit::eventually;
use flexinfer_testkit::h2_frames::{END_STREAM, Frame, Frames, Kind};
use flexinfer_testkit::origin::{Action, Origin};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::world::{BOUND, World, model};

const CHAT: &str = "/v1/chat/completions";
const ASK: &[u8] = br#"{"model":"m"}"#;
const NO_ERROR: u32 = 0;

fn over_http2() -> Served {
    let mut model = model("m", None);
    model.effective.spoken.protocol = EngineProtocol::H2c;
    model
}

/// An engine whose every frame the test sends.
struct Engine(TcpListener);

impl Engine {
    async fn start() -> (Self, World) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        // Whose requests share a connection to their engine.
        let world = World::on_one_lane(address, vec![over_http2()], Rules::default());
        (Self(listener), world)
    }

    async fn connection(&self) -> Frames {
        let (socket, _) = timeout(BOUND, self.0.accept()).await.expect("somebody comes").unwrap();
        Frames::accept(socket).await.unwrap()
    }
}

/// A request by a client of its own.
fn ask(world: &World) -> JoinHandle<Answer> {
    let address = world.address;
    tokio::spawn(async move {
        let mut client = Client::connect(address).await.unwrap();
        client.post(CHAT, ASK).await.unwrap();
        client.answer().await.unwrap()
    })
}

/// The stream of the next request, which has come to its end.
async fn taken(engine: &mut Frames) -> u32 {
    timeout(BOUND, engine.ended()).await.expect("a request comes").expect("the connection is open")
}

async fn answer(engine: &mut Frames, stream: u32) {
    let headers = [(":status", "200"), ("content-type", "application/json")];
    let answer = [Frame::headers(stream, 0, &headers), Frame::data(stream, END_STREAM, b"{}")];
    engine.send(&answer).await.unwrap();
}

/// Reads on until the other side has closed, as every server should that says farewell.
async fn closed(mut engine: Frames) {
    while timeout(BOUND, engine.next()).await.expect("it is closed").is_some() {}
}

async fn status(asked: JoinHandle<Answer>) -> u16 {
    timeout(BOUND, asked).await.expect("it is answered").unwrap().status()
}

#[tokio::test]
async fn what_an_engine_took_before_its_farewell_is_finished_and_the_next_goes_over_a_new_connection()
 {
    let (engine, world) = Engine::start().await;
    let one = ask(&world);
    let mut first = engine.connection().await;
    let one_stream = taken(&mut first).await;
    let two = ask(&world);
    let two_stream = taken(&mut first).await;
    assert!(two_stream > one_stream, "they share the connection");
    first.send(&[Frame::goaway(two_stream, NO_ERROR)]).await.unwrap();
    answer(&mut first, two_stream).await;
    assert_eq!(status(two).await, 200);
    let three = ask(&world);
    let mut second = engine.connection().await;
    let stream = taken(&mut second).await;
    answer(&mut second, stream).await;
    assert_eq!(status(three).await, 200);
    answer(&mut first, one_stream).await;
    assert_eq!(status(one).await, 200);
    closed(first).await;
    assert_eq!(world.desk.rebooked(), 0, "something was sent twice");
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn what_an_engine_says_it_has_not_begun_is_sent_again_and_nothing_else() {
    let (engine, world) = Engine::start().await;
    let one = ask(&world);
    let mut first = engine.connection().await;
    let one_stream = taken(&mut first).await;
    let two = ask(&world);
    assert!(taken(&mut first).await > one_stream, "they share the connection");
    first.send(&[Frame::goaway(one_stream, NO_ERROR)]).await.unwrap();
    let mut second = engine.connection().await;
    let again = taken(&mut second).await;
    answer(&mut second, again).await;
    assert_eq!(status(two).await, 200);
    answer(&mut first, one_stream).await;
    assert_eq!(status(one).await, 200);
    closed(first).await;
    assert_eq!((world.desk.booked(), world.desk.rebooked()), (2, 1));
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn a_farewell_between_two_requests_loses_none() {
    let (engine, world) = Engine::start().await;
    let mut client = Client::connect(world.address).await.unwrap();
    for round in 0..20 {
        client.post(CHAT, ASK).await.unwrap();
        let mut connection = engine.connection().await;
        let stream = taken(&mut connection).await;
        // What comes meanwhile comes to a connection that takes nothing more.
        let headers = [(":status", "200"), ("content-type", "application/json")];
        let frames = [
            Frame::headers(stream, 0, &headers),
            Frame::data(stream, END_STREAM, b"{}"),
            Frame::goaway(stream, NO_ERROR),
        ];
        connection.send(&frames).await.unwrap();
        tokio::spawn(closed(connection));
        let answer = client.answer().await.unwrap();
        assert_eq!(answer.status(), 200, "round {round}: {}", answer.text());
    }
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn what_an_engine_took_and_left_unanswered_is_not_sent_again_whatever_its_farewell_says() {
    let (engine, world) = Engine::start().await;
    for farewell in [true, false] {
        let asked = ask(&world);
        let mut connection = engine.connection().await;
        let stream = taken(&mut connection).await;
        if farewell {
            connection.send(&[Frame::goaway(stream, NO_ERROR)]).await.unwrap();
        }
        drop(connection);
        assert_eq!(status(asked).await, 502, "farewell: {farewell}");
    }
    assert_eq!(world.desk.rebooked(), 0);
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn a_gateway_that_stops_says_farewell_to_clients_of_http2_and_finishes_their_streams() {
    let end = Arc::<Notify>::default();
    let ends = Arc::clone(&end);
    let engine = Origin::start(move |_| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        let begun = [head, "9\r\ndata: 1\n\n\r\n"].concat().into_bytes();
        let rest = b"9\r\ndata: 2\n\n\r\n0\r\n\r\n".to_vec();
        vec![Action::Write(begun), Action::Wait(Arc::clone(&ends)), Action::Write(rest)]
    })
    .await
    .unwrap();
    let World { address, gateway, .. } = World::new(engine.address, vec![model("m", None)]);
    let mut idle = Frames::connect(address).await.unwrap();
    let head = |path| {
        [(":method", "GET"), (":scheme", "http"), (":authority", "gateway"), (":path", path)]
    };
    idle.send(&[Frame::headers(1, END_STREAM, &head("/v1/models"))]).await.unwrap();
    assert_eq!(timeout(BOUND, idle.ended()).await.unwrap(), Some(1));
    let mut busy = Frames::connect(address).await.unwrap();
    busy.send(&[Frame::headers(1, END_STREAM, &head("/model/m/stream"))]).await.unwrap();
    let first = timeout(BOUND, busy.next_of(Kind::DATA)).await.unwrap().unwrap();
    assert_eq!(first.payload, b"data: 1\n\n");
    let patience =
        Patience { drain_delay: Duration::ZERO, in_flight: BOUND, first_request: Duration::ZERO };
    let stopping = tokio::spawn(gateway.stop(patience));
    for (name, client) in [("idle", &mut idle), ("busy", &mut busy)] {
        let farewell = timeout(BOUND, client.next_of(Kind::GOAWAY)).await.unwrap();
        let farewell = farewell.unwrap_or_else(|| panic!("{name} is cut off without a word"));
        assert!(farewell.last() >= 1, "{name}: its own request counts as not begun");
        assert_eq!(farewell.payload[4..8], NO_ERROR.to_be_bytes(), "{name}");
    }
    end.notify_one();
    let second = timeout(BOUND, busy.next_of(Kind::DATA)).await.unwrap().unwrap();
    assert_eq!(second.payload, b"data: 2\n\n");
    for client in [idle, busy] {
        closed(client).await;
    }
    assert!(stopping.await.unwrap(), "something was left in flight");
}
