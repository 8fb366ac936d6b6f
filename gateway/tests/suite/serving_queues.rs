//! Requests that wait: for a model that sleeps, for a slot, and what bounds and ends their waiting.

use std::time::{Duration, Instant};

use flexinfer_testkit::client::Answer;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::serving_models::simulated;
use crate::serving_processes::kill;
use crate::serving_world::{Home, Serving, WITHOUT_END, assert_ok, assert_refused, chat};

/// Answers of `count` requests that are asked at once, as they come.
fn crowd(
    gateway: &Serving,
    model: &'static str,
    count: usize,
) -> FuturesUnordered<JoinHandle<Answer>> {
    let address = gateway.address;
    (0..count).map(|_| tokio::spawn(chat(address, model))).collect()
}

#[tokio::test]
async fn queue_15_a_thousand_requests_wake_a_model_once_and_are_all_answered() {
    let llama = simulated("llama", &json!({ "loadTime": "1s" }), "");
    let home = Home::new(&[("llama.yaml", &llama)]);
    // As many open files as most systems let a program begin with.
    let command = home.command_after("ulimit -S -n 1024", &["--max-queue-size", "1000"]);
    let gateway = Serving::run(home, command).await;
    let mut answers = crowd(&gateway, "llama", 1_000);
    while let Some(answer) = answers.next().await {
        assert_ok(&answer.unwrap());
    }
    assert_eq!(gateway.engine_starts("llama"), 1);
    gateway.until_quiet("llama").await;
}

#[tokio::test]
async fn queue_17_as_many_wait_for_a_cold_model_as_may() {
    let llama = simulated("llama", &json!({ "loadTime": "1s", "maxConcurrency": 1 }), "");
    let gateway = Serving::start_with(&["--max-queue-size", "10"], &[("llama.yaml", &llama)]).await;
    let mut answers = crowd(&gateway, "llama", 30);
    for _ in 0..20 {
        let refused = answers.next().await.unwrap().unwrap();
        assert_refused(&refused, 503, "queue_full", &["10 requests wait for model llama"]);
        assert!(refused.head.header("retry-after").is_some());
    }
    for _ in 0..10 {
        assert_ok(&answers.next().await.unwrap().unwrap());
    }
    assert_eq!(gateway.engine_starts("llama"), 1);
}

#[tokio::test]
async fn queue_17_as_many_wait_for_a_slot_of_a_warm_model_as_may() {
    let llama = simulated("llama", &json!({ "maxConcurrency": 1, "timePerToken": "10ms" }), "");
    let gateway = Serving::start_with(&["--max-queue-size", "10"], &[("llama.yaml", &llama)]).await;
    let holder = gateway.stream("llama", WITHOUT_END).await;
    let mut answers = crowd(&gateway, "llama", 30);
    for _ in 0..20 {
        let refused = answers.next().await.unwrap().unwrap();
        assert_refused(&refused, 503, "queue_full", &["10 requests wait for model llama"]);
    }
    drop(holder);
    for _ in 0..10 {
        assert_ok(&answers.next().await.unwrap().unwrap());
    }
    gateway.until_quiet("llama").await;
}

#[tokio::test]
async fn queue_17_with_a_bound_of_zero_nobody_waits_and_the_model_still_wakes() {
    let llama = bounded(0);
    let gateway = Serving::start(&[("llama.yaml", &llama)]).await;
    assert_refused(&gateway.chat("llama").await, 503, "queue_full", &["takes no queue"]);
    gateway.until_phase("llama", "Ready").await;
    assert_ok(&gateway.chat("llama").await);
    let holder = gateway.stream("llama", WITHOUT_END).await;
    assert_refused(&gateway.chat("llama").await, 503, "queue_full", &["takes no queue"]);
    drop(holder);
    gateway.until_quiet("llama").await;
    assert_ok(&gateway.chat("llama").await);
}

#[tokio::test]
async fn queue_17_a_bound_that_is_edited_loses_nobody_and_restarts_nothing() {
    let gateway = Serving::start(&[("llama.yaml", &bounded(3))]).await;
    let holder = gateway.stream("llama", WITHOUT_END).await;
    let mut waiting = crowd(&gateway, "llama", 3);
    gateway.until("llama", "waited for by three", |state| state["waiting"] == 3).await;

    gateway.home.write("llama.yaml", &bounded(1));
    // Refused before by the old bound, after by the new one.
    let by_the_new_one = |answer: &Answer| answer.text().contains("1 request waits");
    gateway.chat_until("llama", "refused by the new bound", by_the_new_one).await;
    assert_eq!(gateway.state("llama").await["waiting"], 3);

    gateway.home.write("llama.yaml", &bounded(4));
    let mut fourth = gateway.ask("llama").await;
    loop {
        tokio::select! {
            refused = fourth.answer() => {
                assert_eq!(refused.unwrap().status(), 503);
                fourth = gateway.ask("llama").await;
            }
            _ = gateway.until("llama", "waited for by four", |state| state["waiting"] == 4) => break,
        }
    }
    drop(holder);
    while let Some(answer) = waiting.next().await {
        assert_ok(&answer.unwrap());
    }
    assert_ok(&fourth.answer().await.unwrap());
    assert_eq!(gateway.engine_starts("llama"), 1);
}

fn bounded(limit: u32) -> String {
    let config = json!({ "maxConcurrency": 1, "timePerToken": "10ms" });
    let annotations = format!("  annotations:\n    flexinfer.ai/max-queue: \"{limit}\"\nspec:");
    simulated("llama", &config, "").replacen("spec:", &annotations, 1)
}

#[tokio::test]
async fn queue_20_twenty_times_a_model_wakes_serves_and_sleeps() {
    let sleepy = "  serverless:\n    idleTimeout: 100ms\n";
    let gateway = Serving::start(&[("llama.yaml", &simulated("llama", &json!({}), sleepy))]).await;
    for cycle in 1..=20 {
        assert_ok(&gateway.chat("llama").await);
        gateway.until_phase("llama", "Idle").await;
        assert_eq!(gateway.engines().len(), 0, "after cycle {cycle}");
        assert_eq!(gateway.engine_starts("llama"), cycle);
    }
}

#[tokio::test]
async fn queue_05_an_engine_killed_while_it_loads_is_told_to_all_who_wait_and_tried_again() {
    let slow = simulated("llama", &json!({ "loadTime": "5m" }), "");
    let gateway = Serving::start(&[("llama.yaml", &slow)]).await;
    for _ in 0..3 {
        // Left alone for a while after each failure.
        gateway.until_phase("llama", "Idle").await;
        let mut answers = crowd(&gateway, "llama", 3);
        let three_wait = |state: &serde_json::Value| {
            state["waiting"] == 3 && !state["progress"].is_null() && state["phase"] == "Loading"
        };
        gateway.until("llama", "loading for three", three_wait).await;
        let engines = gateway.engines();
        assert_eq!(engines.len(), 1);
        kill(engines[0]);
        while let Some(answer) = answers.next().await {
            let answer = answer.unwrap();
            assert_refused(&answer, 503, "activation_failed", &["signal 9"]);
            assert!(answer.head.header("retry-after").is_some());
        }
        let refused = gateway.chat("llama").await;
        assert_refused(&refused, 503, "activation_failed", &["signal 9"]);
    }
    gateway.home.write("llama.yaml", &simulated("llama", &json!({}), ""));
    gateway.until_phase("llama", "Idle").await;
    assert_ok(&gateway.chat("llama").await);
}

#[tokio::test]
async fn queue_06_a_stream_that_is_longer_than_the_idle_timeout_is_not_cut() {
    let more = "  serverless:\n    idleTimeout: 200ms\n";
    let llama = simulated("llama", &json!({ "timePerToken": "20ms" }), more);
    let gateway = Serving::start(&[("llama.yaml", &llama)]).await;
    let began = Instant::now();
    assert!(gateway.stream("llama", 80).await.finish().await);
    assert!(began.elapsed() > Duration::from_millis(1_500), "longer than the idle timeout");
    assert_eq!(gateway.engine_starts("llama"), 1);
    gateway.until_phase("llama", "Idle").await;
}

#[tokio::test]
async fn queue_09_a_request_around_the_moment_of_going_to_sleep_is_served() {
    let more = "  serverless:\n    idleTimeout: 100ms\n";
    let gateway = Serving::start(&[("llama.yaml", &simulated("llama", &json!({}), more))]).await;
    assert_ok(&gateway.chat("llama").await);
    for step in 0..30 {
        // Not a wait for a state: these are the moments to ask at.
        tokio::time::sleep(Duration::from_millis(85 + step)).await;
        assert_ok(&gateway.chat("llama").await);
    }
    assert!(gateway.engine_starts("llama") > 1, "it went to sleep in between");
}

#[tokio::test]
async fn queue_21_who_waits_for_a_model_that_is_removed_is_told_and_a_new_one_serves() {
    let slow = simulated("llama", &json!({ "loadTime": "5m" }), "");
    let gateway = Serving::start(&[("llama.yaml", &slow)]).await;
    let mut answers = crowd(&gateway, "llama", 20);
    gateway.until("llama", "waited for by twenty", |state| state["waiting"] == 20).await;
    gateway.home.remove("llama.yaml");
    let began = Instant::now();
    while let Some(answer) = answers.next().await {
        assert_refused(&answer.unwrap(), 404, "model_not_found", &["was removed"]);
    }
    println!("all were told {:?} after the removal", began.elapsed());
    assert_refused(&gateway.chat("llama").await, 404, "model_not_found", &[]);
    gateway.home.write("llama.yaml", &simulated("llama", &json!({ "answerTokens": 5 }), ""));
    let answer = gateway.chat_until("llama", "known", |answer| answer.status() != 404).await;
    assert_ok(&answer);
}
