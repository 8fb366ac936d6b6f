//! What a body says decides where it goes, and only what every reader understands alike.

use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::eventually;
use flexinfer_testkit::origin::Origin;

use crate::world::{BOUND, World, model};

const CHAT: &str = "/v1/chat/completions";

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
async fn body_08_a_byte_order_mark_does_not_reach_the_engine() {
    let engine = Origin::answering("{}").await.unwrap();
    let models = vec![model("m", None), model("renamed", Some("other"))];
    let world = World::new(engine.address, models);
    let mut client = Client::connect(world.address).await.unwrap();
    for (text, sent_on) in [
        (r#"{"model":"m","prompt":"x"}"#, r#"{"model":"m","prompt":"x"}"#),
        (r#"{"model":"renamed","prompt":"x"}"#, r#"{"model":"other","prompt":"x"}"#),
    ] {
        client.post(CHAT, &[b"\xef\xbb\xbf", text.as_bytes()].concat()).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 200, "{text}");
        let requests = engine.requests();
        assert_eq!(requests.last().unwrap().body, sent_on.as_bytes());
    }
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
    let paths = [CHAT, "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/rerank"];
    for (before, path) in paths.into_iter().enumerate() {
        let bytes = request("POST", path, &[], body);
        let head = bytes.len() - body.len();
        assert!(eventually(BOUND, || world.at_rest()).await);
        let mut client = Client::connect(world.address).await.unwrap();
        client.send(&bytes[..head + cut]).await.unwrap();
        assert!(eventually(BOUND, || world.budget.held() == cut as u64).await);
        assert_eq!(world.desk.booked(), before, "booked without a model");
        client.send(&bytes[head + cut..]).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 200, "{path}");
    }
    assert_eq!(engine.requests().len(), 5);
}

#[tokio::test]
async fn a_header_that_decides_comes_once() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("m", None), model("n", None)]);
    let (json, form) = ("application/json", "multipart/form-data; boundary=x");
    for (path, headers) in [
        (CHAT, [("Content-Type", json), ("content-type", form)]),
        (CHAT, [("Content-Type", json), ("Content-Type", json)]),
        ("/v1/audio/transcriptions", [("Content-Type", form), ("Content-Type", json)]),
        ("/model/m/anything", [("Content-Type", json), ("Content-Type", form)]),
        (CHAT, [("X-Model-ID", "m"), ("X-Model-ID", "n")]),
    ] {
        let mut client = Client::connect(world.address).await.unwrap();
        client.send(&request("POST", path, &headers, br#"{"model":"m"}"#)).await.unwrap();
        let answer = client.answer().await.unwrap();
        let code = answer.head.header("x-flexinfer-error-code");
        assert_eq!((answer.status(), code), (400, Some("repeated_header")), "{path} {headers:?}");
    }
    assert_eq!(engine.requests().len(), 0);
    let mut client = Client::connect(world.address).await.unwrap();
    let twice = [("X-Other", "1"), ("X-Other", "2")];
    client.send(&request("POST", CHAT, &twice, br#"{"model":"m"}"#)).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
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
