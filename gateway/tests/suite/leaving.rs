//! A client that leaves stops costing anything: its place, its slot, its engine's time.

use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::eventually;
use flexinfer_testkit::h2_client::{End, H2Client, Upload};
use flexinfer_testkit::origin::{Action, Origin};

use crate::world::{BOUND, World, model};

const CHAT: &str = "/v1/chat/completions";
const ASK: &[u8] = br#"{"model":"m","stream":true}"#;

fn begun_stream() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n"
        .to_vec()
}

async fn hanging(first: Option<Vec<u8>>) -> Origin {
    Origin::start(move |_| first.iter().cloned().map(Action::Write).chain([Action::Hang]).collect())
        .await
        .unwrap()
}

#[tokio::test]
async fn sse_06_a_a_client_that_leaves_the_queue_frees_its_place() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    world.desk.close();
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, ASK).await.unwrap();
    assert!(eventually(BOUND, || world.desk.waiting() == 1).await);
    drop(client);
    assert!(eventually(BOUND, || world.at_rest()).await, "the place is still taken");
    let page = String::from_utf8(world.metrics.page().unwrap()).unwrap();
    assert!(page.contains(r#"flexinfer_proxy_queued_requests_total{model="m"} 1"#), "{page}");

    let mut client = H2Client::connect(world.address).await.unwrap();
    let upload = Upload::post(CHAT, ASK);
    let mut pending = client.begin(&upload).await.unwrap();
    pending.send(ASK, 1 << 14, Some(End::Apart)).await.unwrap();
    assert!(eventually(BOUND, || world.desk.waiting() == 1).await);
    pending.reset();
    assert!(eventually(BOUND, || world.at_rest()).await, "the place is still taken");
    world.desk.open();
    assert_eq!(engine.connections(), 0);
}

#[tokio::test]
async fn sse_06_c_e_leaving_before_the_first_byte_ends_the_engines_work_stream_or_not() {
    for ask in [ASK, br#"{"model":"m"}"#] {
        let engine = hanging(None).await;
        let world = World::new(engine.address, vec![model("m", None)]);
        let mut client = Client::connect(world.address).await.unwrap();
        client.post(CHAT, ask).await.unwrap();
        assert!(eventually(BOUND, || engine.requests().len() == 1).await);
        drop(client);
        assert!(eventually(BOUND, || engine.left_early() == 1).await, "the engine still works");
        assert!(eventually(BOUND, || world.at_rest()).await);
    }
}

#[tokio::test]
async fn sse_06_d_leaving_in_the_middle_of_a_stream_ends_the_engines_work() {
    let engine = hanging(Some(begun_stream())).await;
    let world = World::new(engine.address, vec![model("m", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, ASK).await.unwrap();
    client.head().await.unwrap();
    assert!(client.chunk().await.unwrap().is_some());
    client.reset().unwrap();
    assert!(eventually(BOUND, || engine.left_early() == 1).await, "the engine still works");
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn sse_06_f_a_reset_stream_ends_the_engines_work_and_not_its_siblings() {
    let engine = hanging(Some(begun_stream())).await;
    let world = World::new(engine.address, vec![model("m", None)]);
    let mut client = H2Client::connect(world.address).await.unwrap();
    let upload = Upload::post(CHAT, ASK);
    let mut streams = Vec::new();
    for _ in 0..2 {
        let mut pending = client.begin(&upload).await.unwrap();
        pending.send(ASK, 1 << 14, Some(End::WithLastBytes)).await.unwrap();
        let (status, mut stream) = pending.head().await.unwrap();
        assert_eq!(status, 200);
        assert!(stream.frame().await.unwrap().is_some());
        streams.push(stream);
    }
    streams.pop().unwrap().reset();
    assert!(eventually(BOUND, || engine.left_early() == 1).await, "the engine still works");
    assert!(eventually(BOUND, || world.desk.held() == 1).await);
    assert_eq!(world.lifecycle.in_flight(), 1, "the other stream goes on");
}

#[tokio::test]
async fn sse_06_g_leaving_during_the_upload_calls_no_engine() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let bytes = request("POST", CHAT, &[], &vec![b' '; 100_000]);
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&bytes[..50_000]).await.unwrap();
    assert!(eventually(BOUND, || world.budget.held() > 0).await);
    drop(client);
    assert!(eventually(BOUND, || world.at_rest()).await);
    assert_eq!((world.desk.booked(), engine.connections()), (0, 0));
}

#[tokio::test]
async fn sse_07_ending_the_sending_side_counts_as_leaving() {
    let engine = hanging(None).await;
    let world = World::new(engine.address, vec![model("m", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, ASK).await.unwrap();
    assert!(eventually(BOUND, || engine.requests().len() == 1).await);
    client.finish_sending().await.unwrap();
    assert!(eventually(BOUND, || engine.left_early() == 1 && world.at_rest()).await);
}

#[tokio::test]
async fn a_client_that_leaves_behind_its_next_request_waits_no_more() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    world.desk.close();
    for reset in [false, true] {
        let mut client = Client::connect(world.address).await.unwrap();
        client.post(CHAT, ASK).await.unwrap();
        assert!(eventually(BOUND, || world.desk.waiting() == 1).await);
        client.send(&request("GET", "/v1/models", &[], b"").repeat(2)).await.unwrap();
        if reset {
            client.reset().unwrap();
        } else {
            drop(client);
        }
        assert!(eventually(BOUND, || world.at_rest()).await, "somebody waits for nobody");
    }
    assert_eq!(engine.connections(), 0);
}
