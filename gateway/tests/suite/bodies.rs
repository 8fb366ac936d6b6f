//! Bodies of every size and framing arrive at the engine whole, once, with the right name and a length.
//! This is what must be green before Pingora's version moves (see `gateway/src/replay`).

use std::time::Duration;

use flexinfer_core::fleet::Served;
use flexinfer_gateway::parts::Limits;
use flexinfer_testkit::client::{Client, chunked_request, request};
use flexinfer_testkit::eventually;
use flexinfer_testkit::h2_client::{End, H2Client, Upload};
use flexinfer_testkit::origin::{Action, Origin, Recorded, answer};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::world::{BOUND, World, limits, model};

const CHAT: &str = "/v1/chat/completions";

/// Around Pingora's own limit of 64 KiB, around our piece of 256 KiB, and long.
const SIZES: &[usize] =
    &[64, 1000, 65_535, 65_536, 65_537, 65_600, 262_143, 262_144, 262_145, 1 << 20, (1 << 20) + 1];
const LONG: usize = 30 << 20;

/// The engine calls the model `other-name`: the client's names are longer, shorter and as long.
const NAMES: [&str; 3] = ["m", "other-nam2", "a-name-that-is-much-longer-than-the-engines"];
const ENGINE_NAME: &str = "other-name";

fn models() -> Vec<Served> {
    NAMES.iter().map(|name| model(name, Some(ENGINE_NAME))).collect()
}

/// A JSON body of exactly `size` bytes (or a little more, for sizes below the frame of it).
fn body(model: &str, size: usize) -> Vec<u8> {
    let head = r#"{"messages":[{"role":"user","content":""#;
    let tail = format!(r#""}}],"model":"{model}","n":1}}"#);
    let filler = size.saturating_sub(head.len() + tail.len());
    let mut body = head.as_bytes().to_vec();
    body.extend((0..filler).map(|at| b'a' + u8::try_from(at % 23).unwrap()));
    body.extend_from_slice(tail.as_bytes());
    body
}

fn assert_whole(seen: &Recorded, size: usize) {
    assert!(seen.complete, "the engine got a part only");
    assert!(
        seen.body == body(ENGINE_NAME, size + ENGINE_NAME.len() - 1),
        "changed on the way: {size}"
    );
    assert_eq!(seen.head.header("content-length"), Some(seen.body.len().to_string().as_str()));
    assert_eq!(seen.head.count("content-length"), 1);
    assert_eq!(seen.head.count("transfer-encoding"), 0);
}

/// The engine got bodies of these sizes, in this order, and nothing was wrong with any.
fn assert_all_whole(engine: &Origin, sizes: &[usize]) {
    let seen = engine.requests();
    assert_eq!(seen.len(), sizes.len());
    for (seen, size) in seen.iter().zip(sizes) {
        assert_whole(seen, *size);
    }
    assert_eq!(engine.faults(), [], "a terminator too many, or bytes after the end");
}

/// What `body` makes of a size when the name is `model` and the frame is that of a one-letter name.
fn sized(model: &str, size: usize) -> Vec<u8> {
    body(model, size + model.len() - 1)
}

fn random_sizes(random: &mut StdRng, length: usize) -> Vec<usize> {
    let largest = (length / 3).clamp(2, 100_000);
    (0..=length / largest).map(|_| random.random_range(1..largest)).collect()
}

#[tokio::test]
async fn body_23_bodies_by_length_arrive_on_one_connection() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, models());
    let mut client = Client::connect(world.address).await.unwrap();
    let mut expected = Vec::new();
    for size in SIZES {
        for name in NAMES {
            client.post(CHAT, &sized(name, *size)).await.unwrap();
            assert_eq!(client.answer().await.unwrap().status(), 200, "{name} {size}");
            expected.push(*size);
        }
    }
    assert_all_whole(&engine, &expected);
    assert_eq!(engine.connections(), 1, "the connection to the engine was not kept");
}

#[tokio::test]
async fn body_22_chunked_bodies_arrive_with_a_length_wherever_they_are_cut() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, models());
    let mut client = Client::connect(world.address).await.unwrap();
    let mut random = StdRng::seed_from_u64(22);
    let mut expected = Vec::new();
    for size in SIZES {
        for name in NAMES {
            let body = sized(name, *size);
            let sizes = random_sizes(&mut random, body.len());
            let bytes = chunked_request("POST", CHAT, &[], &body, &sizes);
            let mut cuts: Vec<usize> =
                (0..5).map(|_| random.random_range(0..bytes.len())).collect();
            cuts.sort_unstable();
            client.send_cut(&bytes, &cuts).await.unwrap();
            assert_eq!(client.answer().await.unwrap().status(), 200, "{name} {size}");
            expected.push(*size);
        }
    }
    assert_all_whole(&engine, &expected);
}

#[tokio::test]
async fn bodies_of_30_mib_arrive_by_length_and_chunked() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, models());
    let mut random = StdRng::seed_from_u64(30);
    for name in NAMES {
        let body = sized(name, LONG);
        let mut client = Client::connect(world.address).await.unwrap();
        client.post(CHAT, &body).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 200);
        let sizes = random_sizes(&mut random, body.len());
        client.send(&chunked_request("POST", CHAT, &[], &body, &sizes)).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 200);
    }
    let seen = engine.requests();
    assert_eq!(seen.len(), 2 * NAMES.len());
    for seen in &seen {
        assert_whole(seen, LONG);
    }
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn bodies_over_http2_arrive_with_and_without_a_length_however_they_end() {
    let engine = Origin::answering("{}").await.unwrap();
    // However long this machine takes between two of them.
    let limits = Limits { pooled: BOUND, ..limits() };
    let world = World::with(engine.address, models(), limits, 1 << 30);
    let mut client = H2Client::connect(world.address).await.unwrap();
    let mut expected = Vec::new();
    for size in [64, 65_536, 65_600, 262_145, 1 << 20, 10 << 20] {
        for name in NAMES {
            let body = sized(name, size);
            for with_length in [true, false] {
                for end in [End::WithLastBytes, End::Apart] {
                    let upload = Upload { with_length, end, ..Upload::post(CHAT, &body) };
                    let answer = client.request(&upload).await.unwrap();
                    assert_eq!(answer.status, 200, "{name} {size} {with_length} {end:?}");
                    expected.push(size);
                }
            }
        }
    }
    assert_all_whole(&engine, &expected);
    assert_eq!(engine.connections(), 1);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let engine = Origin::start(|seen| {
        let length = seen.body.len().to_string();
        vec![Action::Write(answer(200, &[], length.as_bytes()))]
    })
    .await
    .unwrap();
    let world = World::new(engine.address, models());
    let mut client = Client::connect(world.address).await.unwrap();
    let sizes = [100, 70_000, 200, 300_000, 100];
    let mut all = Vec::new();
    for (at, size) in sizes.iter().enumerate() {
        let body = sized("m", *size);
        all.extend(if at % 2 == 0 {
            request("POST", CHAT, &[], &body)
        } else {
            chunked_request("POST", CHAT, &[], &body, &[1000, 7, 60_000])
        });
    }
    client.send(&all).await.unwrap();
    for size in sizes {
        let expected = body(ENGINE_NAME, size + ENGINE_NAME.len() - 1).len().to_string();
        assert_eq!(client.answer().await.unwrap().text(), expected);
    }
    assert_eq!(engine.faults(), []);
}

#[tokio::test]
async fn a_request_that_comes_while_the_one_before_waits_is_not_lost() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, models());
    for chunked in [false, true] {
        let bytes = |size: usize| {
            let body = sized("m", size);
            if chunked {
                chunked_request("POST", CHAT, &[], &body, &[500])
            } else {
                request("POST", CHAT, &[], &body)
            }
        };
        world.desk.close();
        let mut client = Client::connect(world.address).await.unwrap();
        client.send(&bytes(1000)).await.unwrap();
        assert!(eventually(BOUND, || world.desk.waiting() == 1).await);
        client.send(&bytes(70_000)).await.unwrap();
        world.desk.open();
        for _ in 0..2 {
            assert_eq!(client.answer().await.unwrap().status(), 200);
        }
    }
    for (seen, size) in engine.requests().iter().zip([1000, 70_000, 1000, 70_000]) {
        assert_whole(seen, size);
    }
}

#[tokio::test]
async fn body_10_a_body_over_the_limit_is_413_and_nothing_of_it_is_forwarded() {
    let engine = Origin::answering("{}").await.unwrap();
    let small = Limits { max_body: 1 << 20, ..limits() };
    let world = World::with(engine.address, models(), small, 1 << 30);
    let model_first = {
        let mut text = br#"{"model":"m","prompt":""#.to_vec();
        text.resize((1 << 20) - 1, b'x');
        text.extend_from_slice(br#""}"#);
        text
    };
    assert_eq!(model_first.len(), (1 << 20) + 1);
    for long in [model_first, body("m", (1 << 20) + 1)] {
        for chunked in [false, true] {
            let mut client = Client::connect(world.address).await.unwrap();
            let bytes = if chunked {
                chunked_request("POST", CHAT, &[], &long, &[65_536])
            } else {
                request("POST", CHAT, &[], &long)
            };
            client.send(&bytes).await.unwrap();
            let answer = client.answer().await.unwrap();
            assert_eq!(answer.status(), 413);
            assert_eq!(answer.json()["error"]["code"], "body_too_large");
            assert!(answer.text().contains("1048576"), "the limit is not told: {}", answer.text());
        }
    }
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, &body("m", 1 << 20)).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200, "a body of just the limit is taken");
    assert_eq!(engine.requests().len(), 1);
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn bodies_beyond_the_common_budget_are_503_and_the_budget_returns() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::with(engine.address, models(), limits(), 100_000);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, &body("m", 200_000)).await.unwrap();
    let answer = client.answer().await.unwrap();
    assert_eq!(
        (answer.status(), answer.json()["error"]["code"].as_str()),
        (503, Some("buffer_full"))
    );
    assert!(answer.head.header("retry-after").is_some());
    assert!(eventually(BOUND, || world.at_rest()).await);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, &body("m", 90_000)).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_body_that_pauses_for_too_long_is_408() {
    let engine = Origin::answering("{}").await.unwrap();
    let impatient = Limits { body_pause: Duration::from_millis(100), ..limits() };
    let world = World::with(engine.address, models(), impatient, 1 << 30);
    let bytes = request("POST", CHAT, &[], &body("m", 1000));
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&bytes[..500]).await.unwrap();
    let answer = client.answer().await.unwrap();
    assert_eq!(
        (answer.status(), answer.json()["error"]["code"].as_str()),
        (408, Some("read_timeout"))
    );
    let mut client = H2Client::connect(world.address).await.unwrap();
    let whole = body("m", 1000);
    let mut pending = client.begin(&Upload::post(CHAT, &whole)).await.unwrap();
    pending.send(&whole[..500], 500, None).await.unwrap();
    assert_eq!(pending.answer().await.unwrap().status, 408);
    assert!(eventually(BOUND, || world.at_rest()).await);
}
