//! Forms that do not say how long they are: once they are long they go on to their engine as they come, as
//! those that do.

use std::time::Duration;

use flexinfer_gateway::parts::Limits;
use flexinfer_testkit::client::{Client, chunked_request};
use flexinfer_testkit::eventually;
use flexinfer_testkit::framing::chunked;
use flexinfer_testkit::h2_client::{End, H2Client, Upload};
use flexinfer_testkit::origin::{Origin, Recorded};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use crate::form_bodies::{
    END, FILE, MIB, MODEL, TRANSCRIPTIONS, TYPE, assert_none_taken_for_whole, form, part,
    refusing_early,
};
use crate::world::{BOUND, World, limits, model};

fn sent(body: &[u8]) -> Vec<u8> {
    chunked_request("POST", TRANSCRIPTIONS, &[TYPE], body, &[70_001])
}

fn is_chunked(seen: &Recorded) -> bool {
    let length = seen.head.header("content-length");
    seen.head.header("transfer-encoding") == Some("chunked") && length.is_none()
}

async fn world(limits: Limits, budget: u64) -> (Origin, World) {
    let engine = Origin::answering("{}").await.unwrap();
    let models = vec![model("ear", Some("its-own-name"))];
    let world = World::with(engine.address, models, limits, budget);
    (engine, world)
}

#[tokio::test]
async fn multi_02_a_chunked_form_longer_than_all_that_may_be_held_arrives_whole_at_any_cuts() {
    let (engine, world) = world(limits(), 3 << 20).await;
    for seed in 0..6 {
        let mut random = StdRng::seed_from_u64(seed);
        let size = random.random_range(5 * MIB..8 * MIB);
        let body = form("ear", size, "");
        let chunks: Vec<usize> = (0..600).map(|_| random.random_range(1..40_000)).collect();
        let request = chunked_request("POST", TRANSCRIPTIONS, &[TYPE], &body, &chunks);
        let mut cuts: Vec<usize> = (0..60).map(|_| random.random_range(1..request.len())).collect();
        cuts.sort_unstable();
        let mut client = Client::connect(world.address).await.unwrap();
        client.send_cut(&request, &cuts).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 200, "seed {seed}");
        let seen = engine.requests().pop().unwrap();
        assert!(seen.body == form("its-own-name", size, ""), "seed {seed}: changed on its way");
        assert!(is_chunked(&seen), "seed {seed}: {:?}", seen.head);
    }
    assert_eq!(engine.faults(), []);
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn a_short_chunked_form_is_sent_on_with_its_length() {
    let (engine, world) = world(limits(), 1 << 30).await;
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&sent(&form("ear", 900_000, ""))).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    let seen = engine.requests().pop().unwrap();
    let expected = form("its-own-name", 900_000, "");
    assert_eq!(seen.head.header("content-length"), Some(expected.len().to_string().as_str()));
    assert!(seen.body == expected);
}

#[tokio::test]
async fn while_its_model_loads_the_rest_of_a_chunked_form_waits_at_the_client() {
    let (engine, world) = world(limits(), 1 << 30).await;
    world.desk.close();
    let body = form("ear", 12 * MIB, "");
    for over_http2 in [false, true] {
        let (address, body) = (world.address, body.clone());
        let sending = tokio::spawn(async move {
            if over_http2 {
                let headers = [("content-type", TYPE.1)];
                let mut client = H2Client::connect(address).await.unwrap();
                let upload = Upload {
                    headers: &headers,
                    with_length: false,
                    end: End::Apart,
                    ..Upload::post(TRANSCRIPTIONS, &body)
                };
                return client.request(&upload).await.unwrap().status;
            }
            let mut client = Client::connect(address).await.unwrap();
            client.send(&sent(&body)).await.unwrap();
            client.answer().await.unwrap().status()
        });
        assert!(eventually(BOUND, || world.desk.waiting() == 1).await);
        assert!(world.budget.held() < 2 * MIB as u64, "{} bytes are held", world.budget.held());
        assert!(!sending.is_finished());
        world.desk.open();
        assert_eq!(sending.await.unwrap(), 200);
        world.desk.close();
    }
    let expected = form("its-own-name", 12 * MIB, "");
    assert_eq!(engine.requests().len(), 2);
    assert!(engine.requests().iter().all(|seen| seen.complete && seen.body == expected));
    assert!(engine.requests().iter().all(is_chunked));
    assert_eq!(engine.faults(), []);
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn a_model_that_a_chunked_form_names_last_is_waited_for_within_the_budget() {
    let (engine, world) = world(limits(), 2 << 20).await;
    let file = "x".repeat(8 * MIB);
    let body = [part(FILE, &file), part(MODEL, "ear"), END.to_owned()].concat();
    let mut client = Client::connect(world.address).await.unwrap();
    // It may be refused before all of it was taken.
    let _ = client.send(&sent(body.as_bytes())).await;
    let answer = client.answer().await.unwrap();
    assert_eq!(answer.json()["error"]["code"], "buffer_full");
    assert_eq!(engine.begun(), 0);
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn what_is_wrong_at_the_end_of_a_chunked_form_is_refused_and_no_engine_takes_it_for_whole() {
    let narrow = Limits { max_body: 6 * MIB as u64, ..limits() };
    let (engine, world) = world(narrow, 1 << 30).await;
    let whole = form("ear", 4 * MIB, "");
    let cut = sent(&whole[..whole.len() - END.len()]);
    let head = sent(b"");
    let head = &head[..head.len() - chunked(b"", &[]).len()];
    // Forty chunks of this size, each with its size line and line end.
    let begun = &chunked(&whole, &[70_001; 40])[..40 * 70_010];
    let malformed = [head, begun, b"no size\r\n"].concat();
    for (bytes, status, code) in [
        (sent(&form("ear", 4 * MIB, &part(MODEL, "another"))), 400, "conflicting_models"),
        (sent(&form("ear", 4 * MIB, &part(MODEL, "ear"))), 400, "invalid_multipart"),
        (sent(&form("ear", 4 * MIB, "--cut\r\n\r\nbare\r\n")), 400, "invalid_multipart"),
        (cut, 400, "invalid_multipart"),
        (malformed, 400, "invalid_framing"),
        (sent(&form("ear", 12 * MIB, "")), 413, "body_too_large"),
    ] {
        let mut client = Client::connect(world.address).await.unwrap();
        let _ = client.send(&bytes).await;
        let answer = client.answer().await.unwrap();
        assert_eq!(answer.status(), status, "{}", answer.text());
        assert_eq!(answer.json()["error"]["code"], code);
        assert!(eventually(BOUND, || world.at_rest()).await);
    }
    assert_none_taken_for_whole(&engine).await;
}

#[tokio::test]
async fn a_client_that_breaks_off_its_chunked_form_ends_no_form_at_the_engine() {
    let (engine, world) = world(limits(), 1 << 30).await;
    let bytes = sent(&form("ear", 4 * MIB, ""));
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&bytes[..3 * MIB]).await.unwrap();
    assert!(eventually(BOUND, || engine.begun() == 1).await, "it waits for the end");
    drop(client);
    assert!(eventually(BOUND, || world.at_rest()).await);
    assert!(eventually(BOUND, || engine.requests().len() == 1).await);
    assert!(!engine.requests()[0].complete);
}

#[tokio::test]
async fn a_connection_goes_on_after_a_chunked_form() {
    let (engine, world) = world(limits(), 1 << 30).await;
    let mut client = Client::connect(world.address).await.unwrap();
    for _ in 0..3 {
        client.send(&sent(&form("ear", 2 * MIB, ""))).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 200);
    }
    assert_eq!(engine.requests().len(), 3);
    assert!(engine.requests().iter().all(|seen| seen.body == form("its-own-name", 2 * MIB, "")));
}

#[tokio::test]
async fn an_engine_that_answers_before_the_end_of_a_form_is_heard_and_nobody_waits_for_the_rest() {
    let engine = refusing_early().await;
    let hasty = Limits { body_pause: Duration::from_millis(500), ..limits() };
    let world = World::with(engine.address, vec![model("ear", None)], hasty, 1 << 30);
    let body = form("ear", 4 * MIB, "");
    let mut client = Client::connect(world.address).await.unwrap();
    // The end never comes.
    let _ = client.send(&sent(&body)[..3 * MIB]).await;
    let answer = client.answer().await.unwrap();
    assert_eq!((answer.status(), answer.text().as_str()), (413, "{\"engine\":1}"));
    assert!(eventually(BOUND, || world.desk.held() == 0).await, "the slot is held");
    assert!(eventually(BOUND, || world.at_rest()).await, "something waits for the rest");
    let headers = [("content-type", TYPE.1)];
    let upload =
        Upload { headers: &headers, with_length: false, ..Upload::post(TRANSCRIPTIONS, b"") };
    let mut client = H2Client::connect(world.address).await.unwrap();
    let mut pending = client.begin(&upload).await.unwrap();
    let _ = pending.send(&body[..2 * MIB], 16_384, None).await;
    let (status, _streamed) = pending.head().await.unwrap();
    assert_eq!(status, 413);
    assert!(
        eventually(BOUND, || world.at_rest()).await,
        "something waits for the rest over HTTP/2"
    );
}
