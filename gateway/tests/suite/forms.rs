//! Forms arrive whole, wherever the model's part stands, with nothing changed but its value.

use flexinfer_core::fleet::Served;
use flexinfer_testkit::client::{Client, chunked_request, request};
use flexinfer_testkit::eventually;
use flexinfer_testkit::h2_client::{End, H2Client, Upload};
use flexinfer_testkit::origin::Origin;

use crate::world::{BOUND, World, model};

const EDITS: &str = "/v1/images/edits";
const TRANSCRIPTIONS: &str = "/v1/audio/transcriptions";
const TYPE: (&str, &str) = ("Content-Type", "multipart/form-data; boundary=cut-here");

/// Part after part: headers and content.
fn form(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (headers, content) in parts {
        body.extend_from_slice(format!("--cut-here\r\n{headers}\r\n\r\n").as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--cut-here--\r\n");
    body
}

fn file(size: usize) -> Vec<u8> {
    // Bytes of every kind, and a boundary's look-alike in the middle.
    let mut bytes: Vec<u8> = (0..size).map(|at| u8::try_from(at * 7 % 256).unwrap()).collect();
    let middle = size / 2;
    bytes[middle..middle + 12].copy_from_slice(b"\r\n--cut-herX");
    bytes
}

const MODEL: &str = "Content-Disposition: form-data; name=\"model\"";
const FILE: &str =
    "Content-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\nContent-Type: audio/wav";

/// A form with its model's part somewhere.
type Order<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;

async fn world() -> (Origin, World) {
    let engine = Origin::answering("{}").await.unwrap();
    let models = vec![model("whisper", Some("the-engines-own-name"))];
    let world = World::new(engine.address, models);
    (engine, world)
}

#[tokio::test]
async fn multi_01_the_models_part_is_found_before_between_and_after_files() {
    let (engine, world) = world().await;
    let big = file(25 << 20);
    let small = file(1000);
    let mut client = Client::connect(world.address).await.unwrap();
    let name_last = |name: &[u8]| form(&[(FILE, &big), (MODEL, name)]);
    let name_first = |name: &[u8]| form(&[(MODEL, name), (FILE, &big)]);
    let name_between = |name: &[u8]| form(&[(FILE, &small), (MODEL, name), (FILE, &big)]);
    let orders: [Order<'_>; 3] = [&name_last, &name_first, &name_between];
    for order in orders {
        client.send(&request("POST", TRANSCRIPTIONS, &[TYPE], &order(b"whisper"))).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 200);
    }
    for (seen, order) in engine.requests().iter().zip(orders) {
        assert!(seen.body == order(b"the-engines-own-name"), "changed on the way");
    }
    let nameless = form(&[(FILE, &small)]);
    client.send(&request("POST", TRANSCRIPTIONS, &[TYPE], &nameless)).await.unwrap();
    let answer = client.answer().await.unwrap();
    assert_eq!(answer.status(), 400);
    assert_eq!(answer.json()["error"]["code"], "missing_required_field");

    let named = [TYPE, ("X-Model-ID", "whisper")];
    client.send(&request("POST", TRANSCRIPTIONS, &named, &nameless)).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    let seen = engine.requests().pop().unwrap();
    assert!(seen.body == form(&[(MODEL, b"the-engines-own-name"), (FILE, &small)]));
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn multi_02_a_form_ends_normally_by_length_chunked_and_over_http2() {
    let (engine, world) = world().await;
    let wav = file(3 << 20);
    let body = form(&[(FILE, &wav), (MODEL, b"whisper")]);
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&request("POST", TRANSCRIPTIONS, &[TYPE], &body)).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    client
        .send(&chunked_request("POST", TRANSCRIPTIONS, &[TYPE], &body, &[100_000, 1, 70_001]))
        .await
        .unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    let mut client = H2Client::connect(world.address).await.unwrap();
    let headers = [("content-type", TYPE.1)];
    let upload = Upload {
        headers: &headers,
        with_length: false,
        end: End::Apart,
        ..Upload::post(TRANSCRIPTIONS, &body)
    };
    assert_eq!(client.request(&upload).await.unwrap().status, 200);
    let expected = form(&[(FILE, &wav), (MODEL, b"the-engines-own-name")]);
    let seen = engine.requests();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|seen| seen.complete && seen.body == expected));
    assert_eq!(engine.faults(), []);
}

#[tokio::test]
async fn multi_05_every_file_keeps_its_bytes_name_and_type() {
    let engine = Origin::answering("{}").await.unwrap();
    let painter = model("alias-for-edits", Some("painter"));
    let painter = Served::new(painter.effective, "vllm-omni", "", 0);
    let world = World::new(engine.address, vec![painter]);
    let image = |name: &str| {
        format!(
            "Content-Disposition: form-data; name=\"image[]\"; filename=\"{name}.png\"\r\nContent-Type: image/png"
        )
    };
    let (first, second) = (image("one"), image("two \u{e9}"));
    let mask = "Content-Disposition: form-data; name=\"mask\"; filename=\"mask.png\"\r\nContent-Type: image/png";
    let field = |name: &str| format!("Content-Disposition: form-data; name=\"{name}\"");
    let (prompt, count) = (field("prompt"), field("n"));
    let pictures = [file(5000), file(70_000), file(300)];
    let parts = |name: &'static [u8]| {
        form(&[
            (&first, &pictures[0]),
            (&second, &pictures[1]),
            (mask, &pictures[2]),
            (&prompt, "a wide sea \u{1f30a}".as_bytes()),
            (MODEL, name),
            (&count, b"2"),
        ])
    };
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&request("POST", EDITS, &[TYPE], &parts(b"alias-for-edits"))).await.unwrap();
    let answer = client.answer().await.unwrap();
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert!(engine.requests()[0].body == parts(b"painter"));
    assert_eq!(engine.requests()[0].head.header("content-type"), Some(TYPE.1));
}

#[tokio::test]
async fn two_models_in_one_form_are_refused() {
    let (engine, world) = world().await;
    let mut client = Client::connect(world.address).await.unwrap();
    let body = form(&[(MODEL, b"whisper"), (FILE, &file(100)), (MODEL, b"another")]);
    client.send(&request("POST", TRANSCRIPTIONS, &[TYPE], &body)).await.unwrap();
    let answer = client.answer().await.unwrap();
    assert_eq!(answer.status(), 400);
    assert_eq!(answer.json()["error"]["code"], "conflicting_models");
    assert_eq!(engine.requests().len(), 0);
}
