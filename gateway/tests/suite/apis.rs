//! Every API finds its model where it names it, reaches only engines that serve it, and is refused in its
//! own words.

use flexinfer_core::fleet::Served;
use flexinfer_core::openai::apis::{ModelAt, OPERATIONS, Operation, Streams};
use flexinfer_testkit::client::Client;
use flexinfer_testkit::origin::Origin;
use serde_json::Value;

use crate::callers::ask;
use crate::websockets::UPGRADE;
use crate::world::{World, model};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const FORM: (&str, &str) = ("Content-Type", "multipart/form-data; boundary=cut");

/// A model on an engine of the user's own, which serves every API.
fn anything(name: &str, engine_name: Option<&str>) -> Served {
    Served::new(model(name, engine_name).effective, "command", "", 0)
}

/// A request for `operation` that names the model `name` where its API has it.
fn example(
    operation: &Operation,
    name: &str,
) -> (String, Vec<(&'static str, &'static str)>, Vec<u8>) {
    let path =
        operation.path.replace("{id}", "x1").replace("{class}", "x1").replace("{rest}", "x1");
    let form = format!(
        "--cut\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n{name}\r\n--cut--\r\n"
    );
    let upgrade = if operation.streams == Streams::Upgraded { UPGRADE.to_vec() } else { vec![] };
    match operation.model_at {
        ModelAt::Json => (path, vec![JSON], format!(r#"{{"model":"{name}"}}"#).into_bytes()),
        ModelAt::Form => (path, vec![FORM], form.into_bytes()),
        ModelAt::Query => (format!("{path}?model={name}"), upgrade, Vec::new()),
        ModelAt::Address => (format!("/model/{name}{path}"), upgrade, Vec::new()),
    }
}

#[tokio::test]
async fn every_operation_reaches_the_engine_of_the_model_that_it_names() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![anything("m", Some("engines-own"))]);
    for operation in OPERATIONS {
        for method in operation.methods.split(", ") {
            let (path, headers, body) = example(operation, "m");
            let answer = ask(&world, method, &path, &headers, &body).await;
            assert_eq!(answer.status(), 200, "{method} {path}: {}", answer.text());
            let (wanted, _, renamed) = example(operation, "engines-own");
            let wanted = wanted.trim_start_matches("/model/engines-own");
            let seen = engine.requests().pop().unwrap();
            assert_eq!((seen.head.method(), seen.head.target()), (method, wanted));
            assert!(seen.body == renamed, "{path}: {}", String::from_utf8_lossy(&seen.body));
        }
    }
}

#[tokio::test]
async fn an_api_that_no_engine_of_the_model_has_is_404_in_its_own_words() {
    let engine = Origin::answering("{}").await.unwrap();
    let mlc = Served::new(model("m", None).effective, "mlc-llm", "", 0);
    let world = World::new(engine.address, vec![mlc, anything("all", None)]);
    for operation in OPERATIONS
        .iter()
        .filter(|operation| !["/v1/chat/completions", "/v1/completions"].contains(&operation.path))
    {
        let (path, headers, body) = example(operation, "m");
        let method = operation.methods.split(", ").next().unwrap();
        let answer = ask(&world, method, &path, &headers, &body).await;
        assert_eq!(answer.status(), 404, "{path}");
        assert_eq!(answer.head.header("x-flexinfer-error-code"), Some("api_not_served"), "{path}");
        assert_eq!(answer.head.header("content-type"), Some("application/json"));
        if method != "HEAD" {
            let said = answer.text();
            assert!(said.contains("; all does"), "{path}: {said}");
        }
    }
    assert_eq!(engine.requests().len(), 0);
}

#[tokio::test]
async fn http_20_errors_are_json_in_the_words_of_the_api_that_was_called() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![anything("m", None)]);
    let unknown = br#"{"model":"nobody","stream":true}"#;
    let text = |value: &Value| value.as_str().map(str::to_owned).unwrap_or_default();
    for (path, message) in [
        ("/v1/chat/completions", "/error/message"),
        ("/v1/messages", "/error/message"),
        ("/api/chat", "/error"),
        ("/model/nobody/sdapi/v1/txt2img", "/detail"),
        ("/model/nobody/prompt", "/error/message"),
    ] {
        for (method, status, says) in
            [("POST", 404, "does not exist"), ("PATCH", 405, "not allowed")]
        {
            let answer = ask(&world, method, path, &[JSON, ("X-Request-ID", "r1")], unknown).await;
            let body = answer.json();
            assert_eq!(answer.status(), status, "{path}");
            assert!(text(body.pointer(message).unwrap()).contains(says), "{path}: {body}");
            assert_eq!(answer.head.header("x-request-id"), Some("r1"));
            assert_eq!(answer.head.header("content-type"), Some("application/json"));
        }
    }
    let anthropic = ask(&world, "POST", "/v1/messages", &[("X-Request-ID", "r2")], unknown).await;
    let body = anthropic.json();
    assert_eq!((&body["type"], &body["request_id"]), (&"error".into(), &"r2".into()));
    assert_eq!(body["error"]["type"], "not_found_error");
}

#[tokio::test]
async fn what_is_addressed_is_not_looked_into() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![anything("m", Some("engines-own"))]);
    let body = br#"{"model":"a file of theirs","model":"twice","client_id":"c"}"#;
    let answer = ask(&world, "POST", "/model/m/prompt", &[JSON], body).await;
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert_eq!(engine.requests()[0].body, body);
    let answer = ask(&world, "POST", "/prompt", &[JSON], body).await;
    assert_eq!(answer.status(), 400);
    assert_eq!(answer.head.header("x-flexinfer-error-code"), Some("missing_required_field"));
}

#[tokio::test]
async fn two_models_in_one_query_are_refused() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![anything("m", None)]);
    let answer = ask(&world, "GET", "/v1/realtime?model=m&model=n", &UPGRADE, b"").await;
    assert_eq!(
        (answer.status(), answer.json()["error"]["code"].clone()),
        (400, "conflicting_models".into())
    );
    let answer = ask(&world, "GET", "/v1/realtime?intent=x", &UPGRADE, b"").await;
    assert_eq!(answer.json()["error"]["code"], "missing_required_field");
    assert_eq!(engine.requests().len(), 0);
}

#[tokio::test]
async fn a_model_with_listed_paths_is_asked_nowhere_else_and_not_woken() {
    let engine = Origin::answering("{}").await.unwrap();
    let mut ear = model("ear", None);
    ear.effective.serve_paths = vec!["/v1/audio".into()];
    let world = World::new(engine.address, vec![ear]);
    for path in ["/v1/chat/completions", "/model/ear/metrics"] {
        let answer = ask(&world, "POST", path, &[JSON], br#"{"model":"ear"}"#).await;
        assert_eq!(answer.status(), 404, "{path}");
        assert!(answer.text().contains("it is asked at /v1/audio only"), "{}", answer.text());
    }
    assert_eq!(world.desk.booked(), 0);
    let form = b"--cut\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\near\r\n--cut--\r\n";
    let answer = ask(&world, "POST", "/v1/audio/transcriptions", &[FORM], form).await;
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn http_23_a_page_behind_a_models_prefix_is_told_where_it_lies() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![anything("comfy", None)]);
    let gateway = format!("http://{}", world.address);
    let own = engine.address.to_string();
    for (path, target, origin, told) in [
        ("/model/comfy/ws?clientId=c", "/ws?clientId=c", gateway.as_str(), format!("http://{own}")),
        (
            "/model/comfy/api/prompt",
            "/api/prompt",
            "https://elsewhere.test",
            "https://elsewhere.test".into(),
        ),
        ("/model/comfy", "/", gateway.as_str(), format!("http://{own}")),
    ] {
        let mut client = Client::connect(world.address).await.unwrap();
        let host = world.address;
        let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
        let upgrade = if target.starts_with("/ws") { upgrade } else { "" };
        let head =
            format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\n{upgrade}\r\n");
        client.send(head.as_bytes()).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status(), 200, "{path}");
        let seen = engine.requests().pop().unwrap().head;
        assert_eq!(seen.target(), target);
        assert_eq!(seen.header("host"), Some(own.as_str()));
        assert_eq!(seen.header("origin"), Some(told.as_str()), "{path}");
        assert_eq!(seen.header("x-forwarded-prefix"), Some("/model/comfy"));
    }
    let answer = ask(&world, "GET", "/model/comfy/../admin", &[], b"").await;
    assert_eq!(answer.status(), 404);
    assert_eq!(engine.requests().len(), 3);
}
