//! Bodies of every size and framing arrive at the engine whole, once, with the right name and a length.
//! This is what must be green before Pingora's version moves (see `gateway/src/replay`).

use std::time::Duration;

use flexinfer_core::fleet::Served;
use flexinfer_gateway::proxy::Limits;
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
    let seen = engine.requests();
    assert_eq!(seen.len(), expected.len());
    for (seen, size) in seen.iter().zip(expected) {
        assert_whole(seen, size);
    }
    assert_eq!(engine.faults(), []);
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
    let seen = engine.requests();
    assert_eq!(seen.len(), expected.len());
    for (seen, size) in seen.iter().zip(expected) {
        assert_whole(seen, size);
    }
    assert_eq!(engine.faults(), []);
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
    let world = World::new(engine.address, models());
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
    let seen = engine.requests();
    assert_eq!(seen.len(), expected.len());
    for (seen, size) in seen.iter().zip(expected) {
        assert_whole(seen, size);
    }
    assert_eq!(engine.faults(), [], "a terminator too many, or bytes after the end");
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

#[tokio::test]
async fn body_01_duplicate_keys_that_decide_something_are_refused() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("small", None), model("big", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    for text in [
        r#"{"model":"small","messages":[],"model":"big"}"#,
        r#"{"model":"big","messages":[],"model":"small"}"#,
        "{\"model\":\"small\",\"mod\\u0065l\":\"big\"}",
        r#"{"model":"small","stream":false,"stream":true}"#,
        r#"{"model":"small","max_tokens":1,"max_tokens":9}"#,
    ] {
        client.post(CHAT, text.as_bytes()).await.unwrap();
        let answer = client.answer().await.unwrap();
        assert_eq!(
            (answer.status(), answer.json()["error"]["code"].as_str()),
            (400, Some("duplicate_key")),
            "{text}"
        );
    }
    assert_eq!(engine.requests().len(), 0);
    let nested = r#"{"model":"small","messages":[{"a":1,"a":2}],"tools":[{"model":1,"model":2}]}"#;
    client.post(CHAT, nested.as_bytes()).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    assert_eq!(
        engine.requests()[0].body,
        nested.as_bytes(),
        "nested duplicates are the engine's business"
    );
}

#[tokio::test]
async fn body_16_what_only_some_parsers_accept_is_refused() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(
        engine.address,
        vec![model("small", None), model("big", None), model("m", None)],
    );
    let mut client = Client::connect(world.address).await.unwrap();
    for text in [
        r#"{"model":"m","temperature":NaN}"#,
        r#"{"model":"small"} {"model":"big"}"#,
        r#"{"model":"m"}xyz"#,
        r#"{"model":"m",}"#,
        "{'model':'m'}",
    ] {
        client.post(CHAT, text.as_bytes()).await.unwrap();
        let answer = client.answer().await.unwrap();
        assert_eq!(
            (answer.status(), answer.json()["error"]["code"].as_str()),
            (400, Some("invalid_json")),
            "{text}"
        );
    }
    assert_eq!(engine.requests().len(), 0);
}

#[tokio::test]
async fn body_02_an_answer_with_duplicate_keys_goes_to_the_client_as_it_is() {
    let text = r#"{"id":"a","object":"chat.completion","id":"a","choices":[],"usage":{"prompt_tokens":1}}"#;
    let engine = Origin::answering(text).await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, br#"{"model":"m"}"#).await.unwrap();
    let answer = client.answer().await.unwrap();
    assert_eq!((answer.status(), answer.text().as_str()), (200, text));
}

#[tokio::test]
async fn body_28_no_body_is_needed_where_path_or_header_name_the_model() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    let named = [("X-Model-ID", "m")];
    for (bytes, status) in [
        (request("GET", "/v1/models", &[], b""), 200),
        (request("GET", "/health", &[], b""), 200),
        (request("GET", "/model/m/metrics", &[], b""), 200),
        (request("DELETE", "/v1/files/x", &[], b""), 400),
        (request("POST", "/v1/embeddings", &named, b""), 200),
        (request("POST", "/v1/embeddings", &[], b""), 400),
    ] {
        client.send(&bytes).await.unwrap();
        assert_eq!(
            client.answer().await.unwrap().status(),
            status,
            "{}",
            String::from_utf8_lossy(&bytes)
        );
    }
    let targets: Vec<String> =
        engine.requests().iter().map(|seen| seen.head.target().to_owned()).collect();
    assert_eq!(targets, ["/metrics", "/v1/embeddings"]);
}

#[tokio::test]
async fn body_29_nothing_is_decided_before_the_body_is_here() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("model-in-two-parts", None)]);
    let body = br#"{"input":"x","model":"model-in-two-parts"}"#;
    let cut = body.len() - 8;
    for path in [CHAT, "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/rerank"] {
        let bytes = request("POST", path, &[], body);
        let head = bytes.len() - body.len();
        let mut client = Client::connect(world.address).await.unwrap();
        let before = world.lifecycle.in_flight();
        client.send(&bytes[..head]).await.unwrap();
        assert!(eventually(BOUND, || world.lifecycle.in_flight() > before).await);
        client.send(&bytes[head..head + cut]).await.unwrap();
        assert_eq!(world.desk.booked(), engine.requests().len(), "booked without a model");
        client.send(&bytes[head + cut..]).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 200, "{path}");
    }
    assert_eq!(engine.requests().len(), 5);
}

#[tokio::test]
async fn http_10_the_models_name_in_the_body_counts_whatever_the_content_type() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    let body = br#"{"model":"m"}"#;
    for content_type in [Some("application/json; charset=utf-8"), None, Some("text/plain")] {
        let mut bytes = format!("POST {CHAT} HTTP/1.1\r\nHost: gateway\r\n").into_bytes();
        if let Some(content_type) = content_type {
            bytes.extend_from_slice(format!("Content-Type: {content_type}\r\n").as_bytes());
        }
        bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        bytes.extend_from_slice(body);
        client.send(&bytes).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 200, "{content_type:?}");
    }
}
