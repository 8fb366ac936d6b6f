//! The gateway's end, asked for or not: what is under way, and what is left of the engines.

use std::time::Instant;

use flexinfer_testkit::eventually;
use serde_json::json;

use crate::serving_models::{scripted, simulated};
use crate::serving_processes::runs;
use crate::serving_world::{BOUND, Serving, WITHOUT_END, assert_ok, get};

#[tokio::test]
async fn sigterm_turns_readiness_off_finishes_streams_and_leaves_no_engine() {
    let llama = simulated("llama", &json!({ "timePerToken": "20ms" }), "");
    let files = [("llama.yaml", &*llama)];
    let mut gateway = Serving::start_with(&["--drain-delay", "2s"], &files).await;
    let ready = [gateway.address, gateway.admin];
    for address in ready {
        assert_eq!(get(address, "/readyz").await.status(), 200);
    }
    let mut stream = gateway.stream("llama", 200).await;
    let family = gateway.family();
    assert_eq!(family.len(), 2, "a supervisor and its engine");

    gateway.program.terminate();
    gateway.told("not ready any more").await;
    for address in ready {
        assert_eq!(get(address, "/readyz").await.status(), 503);
        assert_eq!(get(address, "/healthz").await.status(), 200);
    }
    // Load balancers take a while to notice: until then requests are served.
    assert_ok(&gateway.chat("llama").await);
    gateway.told("finishing what has begun").await;
    assert_eq!(get(gateway.admin, "/readyz").await.status(), 503);
    assert!(stream.finish().await, "the stream was cut: {}", stream.text);
    assert!(gateway.program.exited(BOUND).await.unwrap().success());
    assert!(!family.iter().copied().any(runs), "something is left");
}

#[tokio::test]
async fn sigterm_serves_who_waits_for_a_model_that_loads() {
    let llama = simulated("llama", &json!({ "loadTime": "1s" }), "");
    let mut gateway = Serving::start(&[("llama.yaml", &llama)]).await;
    let mut waiting = gateway.ask("llama").await;
    gateway.until_phase("llama", "Loading").await;
    gateway.program.terminate();
    assert_ok(&waiting.answer().await.unwrap());
    assert!(gateway.program.exited(BOUND).await.unwrap().success());
}

#[tokio::test]
async fn a_second_sigterm_ends_at_once_and_still_leaves_no_engine() {
    let llama = simulated("llama", &json!({ "timePerToken": "20ms" }), "");
    let mut gateway = Serving::start(&[("llama.yaml", &llama)]).await;
    let mut stream = gateway.stream("llama", WITHOUT_END).await;
    let family = gateway.family();
    gateway.program.terminate();
    gateway.told("finishing what has begun").await;
    assert!(stream.step().await, "the first signal cuts nothing");
    let began = Instant::now();
    gateway.program.terminate();
    gateway.program.exited(BOUND).await.unwrap();
    println!("ended {:?} after the second signal", began.elapsed());
    assert!(!stream.finish().await);
    assert!(!stream.text.contains("[DONE]"));
    assert!(!family.iter().copied().any(runs), "something is left");
}

#[tokio::test]
async fn of_a_gateway_that_is_killed_no_engine_and_no_grandchild_is_left() {
    let warm = "  serverless:\n    minReplicas: 1\n";
    let files = [
        ("a.yaml", &*simulated("llama", &json!({ "loadTime": "5m" }), warm)),
        ("b.yaml", &*scripted("qwen", "family", "", warm)),
    ];
    let gateway = Serving::start(&files).await;
    gateway.until_phase("qwen", "Ready").await;
    gateway.until_phase("llama", "Loading").await;
    // Two supervisors, two engines, a daemon, a shell and its two children.
    let mut family = Vec::new();
    let whole = eventually(BOUND, || {
        family = gateway.family();
        family.len() == 8
    });
    assert!(whole.await, "the family is {family:?}");
    gateway.program.kill();
    let left = || family.iter().copied().filter(|pid| runs(*pid)).count();
    assert!(eventually(BOUND, || left() == 0).await, "{} are left", left());
}
