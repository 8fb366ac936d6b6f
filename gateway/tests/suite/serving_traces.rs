//! Spans: what a collector is told of a request, and what the engine is.

use std::process::Command;

use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::origin::Origin;
use flexinfer_testkit::{Collector, Told};
use serde_json::{Value, json};

use crate::serving_models::model;
use crate::serving_world::{BOUND, Home, Serving, assert_ok, bounded};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SENDER: &str = "00f067aa0ba902b7";
const ANSWER: &str = r#"{"object":"chat.completion","choices":[],
    "usage":{"prompt_tokens":11,"completion_tokens":7,"total_tokens":18}}"#;

/// A gateway before `engine` that tells its spans to `collector`.
async fn traced(engine: &str, collector: &str) -> Serving {
    let home =
        Home::new(&[("ours.yaml", &model("ours", "external", &json!({ "url": engine }), ""))]);
    let mut command: Command = home.command(&["--log-level", "info,flexinfer::access=debug"]);
    command.env("FLEXINFER_OTEL_ENABLED", "true");
    command.env("FLEXINFER_OTEL_SERVICE_NAMESPACE", "lab");
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
    Serving::run(home, command).await
}

async fn ask(gateway: &Serving, name: &str) -> u16 {
    let body = json!({ "model": name, "messages": [] }).to_string();
    let parent = format!("00-{TRACE}-{SENDER}-01");
    let headers = [("traceparent", parent.as_str()), ("Content-Type", "application/json")];
    let mut client = Client::connect(gateway.address).await.unwrap();
    let bytes = request("POST", "/v1/chat/completions", &headers, body.as_bytes());
    client.send(&bytes).await.unwrap();
    bounded(client.answer()).await.unwrap().status()
}

fn note<'t>(span: &'t Told, key: &str) -> &'t str {
    span.notes.get(key).map_or("", String::as_str)
}

#[tokio::test]
async fn a_request_its_wait_and_its_engine_are_told_as_parts_of_the_clients_trace() {
    let engine = Origin::answering(ANSWER).await.unwrap();
    let collector = Collector::start().await.unwrap();
    let mut gateway = traced(&engine.url(), &collector.url()).await;
    // Healthy or not is asked every few seconds: that is nothing to be told.
    assert_ok(&gateway.get("/healthz").await);
    assert_eq!(ask(&gateway, "ours").await, 200);
    assert_eq!(ask(&gateway, "nobody").await, 404);
    let logged = format!("trace=\"{TRACE}\"");
    gateway.told(&logged).await;
    gateway.program.terminate();
    assert!(gateway.program.exited(BOUND).await.unwrap().success());

    let spans = collector.spans().unwrap();
    assert!(spans.iter().all(|span| span.trace == TRACE && !span.failed), "{spans:#?}");
    let named = |name: &str| spans.iter().filter(|span| span.name == name).collect::<Vec<_>>();
    let mut wholes = named("proxy.handle_request");
    // A request is over for its client before it is over here.
    wholes.sort_by_key(|whole| note(whole, "http.response.status_code"));
    let [whole, refused] = wholes.as_slice() else { panic!("{spans:#?}") };
    assert_eq!((whole.parent.as_str(), refused.parent.as_str()), (SENDER, SENDER));
    assert_eq!(whole.program["service.name"], "flexinfer-gateway");
    assert_eq!(whole.program["service.namespace"], "lab");
    assert_eq!(note(whole, "gen_ai.request.model"), "ours");
    assert_eq!(note(whole, "gen_ai.usage.output_tokens"), "7");
    assert_eq!(note(whole, "http.response.status_code"), "200");
    assert_eq!(note(refused, "flexinfer.rejection"), "model_not_found");
    let parts = [named("proxy.wait"), named("proxy.engine")].concat();
    let [wait, attempt] = parts.as_slice() else { panic!("{spans:#?}") };
    assert_eq!((&wait.parent, &attempt.parent), (&whole.id, &whole.id));
    assert_eq!(note(attempt, "server.port"), engine.address.port().to_string());

    let asked = engine.requests();
    let asked = asked.iter().find(|asked| asked.head.method() == "POST").unwrap();
    let carried = format!("00-{TRACE}-{}-01", attempt.id);
    assert_eq!(asked.head.header("traceparent"), Some(carried.as_str()));
}

#[tokio::test]
async fn a_collector_that_is_away_costs_no_request() {
    let engine = Origin::answering(ANSWER).await.unwrap();
    let mut gateway = traced(&engine.url(), "http://127.0.0.1:1").await;
    for _ in 0..20 {
        assert_eq!(ask(&gateway, "ours").await, 200);
    }
    gateway.program.terminate();
    assert!(gateway.program.exited(BOUND).await.unwrap().success());
}

#[tokio::test]
async fn without_a_collector_the_clients_trace_reaches_the_engine_as_it_is() {
    let engine = Origin::answering(ANSWER).await.unwrap();
    let config: Value = json!({ "url": engine.url() });
    let gateway = Serving::start(&[("ours.yaml", &model("ours", "external", &config, ""))]).await;
    assert_eq!(ask(&gateway, "ours").await, 200);
    let asked = engine.requests();
    let asked = asked.iter().find(|asked| asked.head.method() == "POST").unwrap();
    let parent = format!("00-{TRACE}-{SENDER}-01");
    assert_eq!(asked.head.header("traceparent"), Some(parent.as_str()));
}
