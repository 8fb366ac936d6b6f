//! What is counted of requests, where it takes more than one of them to see it.

use flexinfer_testkit::eventually;
use flexinfer_testkit::origin::{Action, Origin, chunked_answer};

use crate::callers::ask;
use crate::world::{BOUND, World, model};

const CHAT: &str = "/v1/chat/completions";

async fn page(world: &World) -> String {
    // A request is counted after its last byte has left.
    assert!(eventually(BOUND, || world.lifecycle.in_flight() == 0).await);
    String::from_utf8(world.metrics.page().unwrap()).unwrap()
}

#[track_caller]
fn assert_lines(page: &str, lines: &[&str]) {
    for line in lines {
        assert!(page.lines().any(|found| found == *line), "{line} is not in\n{page}");
    }
}

#[tokio::test]
async fn choices_among_the_models_of_a_label_are_counted_until_the_models_are_gone() {
    let engine = Origin::answering("{}").await.unwrap();
    let mut models = vec![model("a", None), model("b", None)];
    for model in &mut models {
        model.effective.service_labels = vec!["textgen".into()];
    }
    let world = World::new(engine.address, models);
    for _ in 0..4 {
        ask(&world, "POST", CHAT, &[], br#"{"model":"textgen"}"#).await;
    }
    let counted = page(&world).await;
    let decisions = r#"flexinfer_proxy_label_group_route_decisions_total{label="textgen",outcome="cold",strategy="round-robin"} 4"#;
    let of_a = r#"flexinfer_proxy_label_group_route_target_hits_total{label="textgen",model="a",strategy="round-robin"} 2"#;
    assert_lines(&counted, &[decisions, of_a, &of_a.replace("\"a\"", "\"b\"")]);
    world.metrics.know(["b"]);
    let counted = page(&world).await;
    assert!(!counted.contains(r#"model="a""#), "{counted}");
    assert_lines(&counted, &[decisions]);
    world.metrics.know([]);
    assert!(!page(&world).await.contains("textgen"));
}

#[tokio::test]
async fn the_first_token_of_a_stream_and_the_pace_of_the_others_are_counted() {
    let events = [
        r#"data: {"choices":[{"delta":{"content":"a"}}]}"#,
        r#"data: {"choices":[{"delta":{"content":"b"}}]}"#,
        r#"data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}"#,
        "data: [DONE]",
    ];
    let text = events.join("\n\n") + "\n\n";
    let engine = Origin::start(move |seen| {
        let stream = seen.body.windows(6).any(|part| part == b"stream");
        let kind = if stream { "text/event-stream" } else { "application/json" };
        let body = if stream { text.as_bytes() } else { b"{}" };
        vec![Action::Write(chunked_answer(200, &[("Content-Type", kind)], body, &[60, 40]))]
    })
    .await
    .unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    ask(&world, "POST", CHAT, &[], br#"{"model":"m","stream":true}"#).await;
    ask(&world, "POST", CHAT, &[], br#"{"model":"m"}"#).await;
    let counted = page(&world).await;
    assert_lines(
        &counted,
        &[
            r#"flexinfer_proxy_time_to_first_token_seconds_count{model="m"} 1"#,
            r#"flexinfer_proxy_time_per_output_token_seconds_count{model="m"} 1"#,
            r#"flexinfer_proxy_request_completion_tokens_sum{model="m"} 3"#,
            r#"flexinfer_proxy_request_duration_seconds_count{model="m"} 2"#,
        ],
    );
}

#[tokio::test]
async fn what_a_model_does_not_serve_is_counted_apart() {
    let engine = Origin::answering("{}").await.unwrap();
    let mut narrow = model("narrow", None);
    narrow.effective.serve_paths = vec!["/v1/audio".into()];
    let mut parked = model("parked", None);
    parked.effective.parked = true;
    let world = World::new(engine.address, vec![narrow, parked]);
    for name in ["narrow", "parked", "nobody"] {
        let body = format!(r#"{{"model":"{name}"}}"#);
        assert_eq!(ask(&world, "POST", CHAT, &[], body.as_bytes()).await.status(), 404, "{name}");
    }
    let counted = page(&world).await;
    assert_lines(
        &counted,
        &[
            r#"flexinfer_proxy_requests_total{model="narrow",status="endpoint_unsupported"} 1"#,
            r#"flexinfer_proxy_requests_total{model="parked",status="parked"} 1"#,
        ],
    );
    assert!(!counted.contains("nobody"));
}

/// The proxy's metrics of the original, but for two that its own later versions had no more
/// (`gpugroup_…`).
const OF_THE_ORIGINAL: [&str; 31] = [
    "requests_total",
    "request_duration_seconds",
    "scale_ups_total",
    "upstream_retries_total",
    "queued_requests_total",
    "queue_rejected_total",
    "queue_wait_duration_seconds",
    "queue_depth",
    "active_connections",
    "endpoint_count",
    "endpoint_changes_total",
    "endpoint_refresh_duration_seconds",
    "routing_decisions_total",
    "routing_target_hits_total",
    "routing_key_cardinality",
    "routing_key_cardinality_overflow_total",
    "rate_limited_total",
    "shutdowns_total",
    "shutdown_duration_seconds",
    "activation_retries_total",
    "activation_retry_wait_duration_seconds",
    "activation_duration_seconds",
    "activation_failures_total",
    "max_tokens_clamped_total",
    "request_prompt_tokens",
    "request_completion_tokens",
    "completions_total",
    "stalled_load_total",
    "admission_decisions_total",
    "label_group_route_decisions_total",
    "label_group_route_target_hits_total",
];

#[test]
fn every_metric_that_dashboards_know_is_there() {
    let metrics = flexinfer_gateway::metrics::Metrics::new().unwrap();
    let names: Vec<&str> = metrics.defined().iter().map(|defined| defined.name.as_str()).collect();
    for known in OF_THE_ORIGINAL {
        assert!(names.contains(&format!("flexinfer_proxy_{known}").as_str()), "{known}");
    }
}
