//! Two models that share a GPU: who waits for whom, and what happens to requests under way.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;

use crate::serving_models::simulated;
use crate::serving_world::{Serving, WITHOUT_END, assert_ok, get};

fn member(name: &str, more: &str) -> String {
    let config = json!({ "timePerToken": "20ms" });
    simulated(name, &config, &format!("  gpu:\n    shared: gpu0\n{more}"))
}

#[tokio::test]
async fn queue_18_a_stream_finishes_before_an_equal_is_loaded_and_new_requests_queue_behind_it() {
    let files = [("a.yaml", &*member("first", "")), ("b.yaml", &*member("second", ""))];
    let mut gateway = Serving::start(&files).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut stream = gateway.stream("first", 60).await;

    let mut second = gateway.ask("second").await;
    gateway.until("second", "waited for", |state| state["waiting"] == 1).await;
    let mut behind = gateway.ask("first").await;
    gateway.until("first", "waited for", |state| state["waiting"] == 1).await;
    assert_eq!(gateway.state("second").await["phase"], "Pending");

    let ended = async {
        assert!(stream.finish().await, "the stream was cut: {}", stream.text);
        order.lock().push("stream");
    };
    let answered = async {
        assert_ok(&second.answer().await.unwrap());
        order.lock().push("second");
    };
    let came_behind = async {
        assert_ok(&behind.answer().await.unwrap());
        order.lock().push("behind");
    };
    tokio::join!(ended, answered, came_behind);
    assert_eq!(*order.lock(), ["stream", "second", "behind"]);
    let page = get(gateway.admin, "/metrics").await.text();
    for phase in ["Queued", "Draining", "Stopping", "LoadingWeights"] {
        let line = format!(
            r#"flexinfer_proxy_activation_phase_duration_seconds_count{{model="second",phase="{phase}"}} 1"#
        );
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
    let swap = gateway.state("second").await["lastSwapSeconds"].clone();
    // An equal begins to leave once it has nothing to do: until then the other is queued behind it.
    assert!(swap["Queued"].as_f64().is_some_and(|seconds| seconds > 0.0), "{swap}");
    gateway.told("first → second: swapping").await;
    gateway.told("second → first: swapping").await;
}

#[tokio::test]
async fn queue_18_a_higher_priority_lets_streams_finish_within_the_drain_timeout() {
    let low = member("low", "    priority: 1\n    drainTimeout: 60s\n");
    let high = member("high", "    priority: 2\n");
    let mut gateway = Serving::start(&[("a.yaml", &low), ("b.yaml", &high)]).await;
    let mut stream = gateway.stream("low", 60).await;
    let mut high = gateway.ask("high").await;
    gateway.told("low: finishing 1 request").await;
    assert!(stream.finish().await, "the stream was cut: {}", stream.text);
    assert_ok(&high.answer().await.unwrap());
}

#[tokio::test]
async fn queue_18_a_stream_that_outlasts_the_drain_timeout_is_cut_and_does_not_claim_to_be_done() {
    let low = member("low", "    priority: 1\n    drainTimeout: 300ms\n");
    let high = member("high", "    priority: 2\n");
    let mut gateway = Serving::start(&[("a.yaml", &low), ("b.yaml", &high)]).await;
    let mut stream = gateway.stream("low", WITHOUT_END).await;
    assert_ok(&gateway.chat("high").await);
    assert!(!stream.finish().await, "it claims to be whole");
    assert!(!stream.text.contains("[DONE]"), "{}", stream.text);
    gateway.told("low: cut off 1 request at its drain limit").await;
    gateway.until_quiet("low").await;
}

#[tokio::test]
async fn a_lower_priority_waits_until_the_other_sleeps_and_is_not_forgotten() {
    let high = member("high", "    priority: 2\n  serverless:\n    idleTimeout: 300ms\n");
    let low = member("low", "    priority: 1\n");
    let gateway = Serving::start(&[("a.yaml", &high), ("b.yaml", &low)]).await;
    assert_ok(&gateway.chat("high").await);
    assert_ok(&gateway.chat("low").await);
    assert_eq!(gateway.state("high").await["phase"], "Idle");
}
