//! Long forms go on to their engine as they come: nobody holds them, and while their model loads they stay
//! where they are.

use std::time::Duration;

use flexinfer_gateway::parts::Limits;
use flexinfer_testkit::at_head::AtHead;
use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::eventually;
use flexinfer_testkit::h2_client::{End, H2Client, Upload};
use flexinfer_testkit::origin::{Action, Origin, answer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::form_bodies::{
    END, FILE, MIB, MODEL, TRANSCRIPTIONS, TYPE, assert_none_taken_for_whole, form, part,
};
use crate::world::{BOUND, World, limits, model};

fn sent(body: &[u8]) -> Vec<u8> {
    request("POST", TRANSCRIPTIONS, &[TYPE], body)
}

fn head(length: usize) -> String {
    format!(
        "POST {TRANSCRIPTIONS} HTTP/1.1\r\nHost: g\r\n{}: {}\r\nContent-Length: {length}\r\n\r\n",
        TYPE.0, TYPE.1
    )
}

async fn world() -> (Origin, World) {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("ear", Some("its-own-name"))]);
    (engine, world)
}

/// An engine that keeps nothing of what it reads and answers with how much it was.
async fn counting() -> AtHead {
    AtHead::start(|head, mut socket| async move {
        let length: u64 = head.header("content-length").unwrap().parse().unwrap();
        let mut body = (&mut socket).take(length);
        let read = tokio::io::copy(&mut body, &mut tokio::io::sink()).await?;
        socket.write_all(&answer(200, &[], read.to_string().as_bytes())).await
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn multi_01_a_form_longer_than_all_that_may_be_held_arrives_whole() {
    const LENGTH: usize = 96 * MIB;
    let wide = Limits { max_body: 1 << 30, ..limits() };
    let models = vec![model("ear", Some("its-own-name"))];
    let engine = counting().await;
    let world = World::with(engine.address, models, wide, 4 << 20);
    let begins = [part(MODEL, "ear"), format!("--cut\r\n{FILE}\r\n\r\n")].concat();
    let ends = format!("\r\n{END}");
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(head(begins.len() + LENGTH + ends.len()).as_bytes()).await.unwrap();
    client.send(begins.as_bytes()).await.unwrap();
    let piece = vec![b'x'; MIB];
    let mut most = 0;
    for _ in 0..LENGTH / MIB {
        client.send(&piece).await.unwrap();
        most = most.max(world.budget.held());
    }
    client.send(ends.as_bytes()).await.unwrap();
    let answer = client.answer().await.unwrap();
    let renamed = begins.len() + LENGTH + ends.len() + "its-own-name".len() - "ear".len();
    assert_eq!((answer.status(), answer.text()), (200, renamed.to_string()));
    assert!(most < MIB as u64, "{most} bytes of it were held");
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn while_its_model_loads_the_rest_of_a_form_waits_at_the_client() {
    let (engine, world) = world().await;
    world.desk.close();
    let body = form("ear", 32 * MIB, "");
    for over_http2 in [false, true] {
        let (address, body) = (world.address, body.clone());
        let sending = tokio::spawn(async move {
            if over_http2 {
                let headers = [("content-type", TYPE.1)];
                let mut client = H2Client::connect(address).await.unwrap();
                let upload = Upload { headers: &headers, ..Upload::post(TRANSCRIPTIONS, &body) };
                return client.request(&upload).await.unwrap().status;
            }
            let mut client = Client::connect(address).await.unwrap();
            client.send(&sent(&body)).await.unwrap();
            client.answer().await.unwrap().status()
        });
        assert!(eventually(BOUND, || world.desk.waiting() == 1).await);
        assert!(world.budget.held() < MIB as u64, "{} bytes are held", world.budget.held());
        assert!(!sending.is_finished());
        world.desk.open();
        assert_eq!(sending.await.unwrap(), 200);
        world.desk.close();
    }
    let expected = form("its-own-name", 32 * MIB, "");
    assert_eq!(engine.requests().len(), 2);
    assert!(engine.requests().iter().all(|seen| seen.complete && seen.body == expected));
    assert_eq!(engine.faults(), []);
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn a_model_that_is_named_last_is_waited_for_within_the_budget() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::with(engine.address, vec![model("ear", None)], limits(), 2 << 20);
    let file = "x".repeat(8 * MIB);
    let body = [part(FILE, &file), part(MODEL, "ear"), END.to_owned()].concat();
    let mut client = Client::connect(world.address).await.unwrap();
    // It may be refused before all of it was taken.
    let _ = client.send(&sent(body.as_bytes())).await;
    let answer = client.answer().await.unwrap();
    assert_eq!(answer.json()["error"]["code"], "buffer_full");
    assert_eq!(engine.requests().len(), 0);
}

#[tokio::test]
async fn a_form_whose_first_engine_takes_no_connection_goes_to_another_one_whole() {
    let (engine, world) = world().await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    world.desk.set_engine("ear", closed);
    world.desk.set_spare(engine.address);
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&sent(&form("ear", 8 * MIB, ""))).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    assert!(engine.requests()[0].body == form("its-own-name", 8 * MIB, ""));
}

#[tokio::test]
async fn what_is_wrong_at_the_end_of_a_long_form_is_refused_and_no_engine_takes_it_for_whole() {
    let (engine, world) = world().await;
    let whole = form("ear", 4 * MIB, "");
    let cut = &whole[..whole.len() - END.len()];
    let conflict = form("ear", 4 * MIB, &part(MODEL, "another"));
    let again = form("ear", 4 * MIB, &part(MODEL, "ear"));
    let bare = form("ear", 4 * MIB, "--cut\r\n\r\nno headers\r\n");
    for (body, code) in [
        (conflict.as_slice(), "conflicting_models"),
        (&again, "invalid_multipart"),
        (&bare, "invalid_multipart"),
        (cut, "invalid_multipart"),
    ] {
        let mut client = Client::connect(world.address).await.unwrap();
        let _ = client.send(&sent(body)).await;
        let answer = client.answer().await.unwrap();
        assert_eq!(answer.status(), 400, "{code}");
        assert_eq!(answer.json()["error"]["code"], code);
        assert!(eventually(BOUND, || world.at_rest()).await);
    }
    assert_none_taken_for_whole(&engine).await;
}

#[tokio::test]
async fn a_client_that_leaves_while_the_rest_of_its_form_waits_is_noticed() {
    let (engine, world) = world().await;
    world.desk.close();
    let body = form("ear", 8 * MIB, "");
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&sent(&body)[..90_000]).await.unwrap();
    assert!(eventually(BOUND, || world.desk.waiting() == 1).await);
    drop(client);
    assert!(eventually(BOUND, || world.at_rest()).await, "nobody is waited for over HTTP/1.1");
    let mut client = H2Client::connect(world.address).await.unwrap();
    let headers = [("content-type", TYPE.1)];
    let upload = Upload { headers: &headers, ..Upload::post(TRANSCRIPTIONS, &body) };
    let mut pending = client.begin(&upload).await.unwrap();
    pending.send(&body[..30_000], 10_000, None).await.unwrap();
    assert!(eventually(BOUND, || world.desk.waiting() == 1).await);
    pending.reset();
    assert!(eventually(BOUND, || world.at_rest()).await, "nobody is waited for over HTTP/2");
    assert_eq!(engine.connections(), 0);
}

#[tokio::test]
async fn a_client_that_stops_sending_the_rest_gives_its_slot_back() {
    let engine = Origin::answering("{}").await.unwrap();
    let hasty = Limits { body_pause: Duration::from_millis(300), ..limits() };
    let world = World::with(engine.address, vec![model("ear", None)], hasty, 1 << 30);
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&sent(&form("ear", 4 * MIB, ""))[..2 * MIB]).await.unwrap();
    let answer = client.answer().await.unwrap();
    assert_eq!(answer.json()["error"]["code"], "read_timeout");
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn a_long_body_that_is_no_form_streams_where_the_path_names_the_model() {
    let (engine, world) = world().await;
    let body = vec![7; 8 * MIB];
    let headers = [("Content-Type", "audio/wav")];
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&request("POST", "/model/ear/listen", &headers, &body)).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    assert!(engine.requests()[0].body == body);
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn a_busy_engines_answer_to_a_streamed_form_is_the_clients() {
    let busy = answer(503, &[("Retry-After", "1")], b"{\"busy\":true}");
    let engine = Origin::start(move |_| vec![Action::Write(busy.clone())]).await.unwrap();
    let world = World::new(engine.address, vec![model("ear", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&sent(&form("ear", 4 * MIB, ""))).await.unwrap();
    let answer = client.answer().await.unwrap();
    assert_eq!((answer.status(), answer.json()["busy"].as_bool()), (503, Some(true)));
    assert_eq!(engine.requests().len(), 1);
}

#[tokio::test]
async fn a_connection_goes_on_after_a_streamed_form() {
    let (engine, world) = world().await;
    let mut client = Client::over(TcpStream::connect(world.address).await.unwrap());
    for _ in 0..3 {
        client.send(&sent(&form("ear", 2 * MIB, ""))).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 200);
        client.send(&request("GET", "/v1/models", &[], b"")).await.unwrap();
        assert_eq!(client.answer_to("GET").await.unwrap().status(), 200);
    }
    assert_eq!(engine.requests().len(), 3);
    let mut client = H2Client::connect(world.address).await.unwrap();
    let (headers, body) = ([("content-type", TYPE.1)], form("ear", 2 * MIB, ""));
    let upload =
        Upload { headers: &headers, end: End::Apart, ..Upload::post(TRANSCRIPTIONS, &body) };
    for _ in 0..2 {
        assert_eq!(client.request(&upload).await.unwrap().status, 200);
    }
    assert!(engine.requests().iter().all(|seen| seen.body == form("its-own-name", 2 * MIB, "")));
}
