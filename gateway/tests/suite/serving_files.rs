//! The folder while the gateway runs: what is added, edited, broken and removed, and what requests that
//! are under way notice of it.

use flexinfer_testkit::client::Answer;
use serde_json::json;

use crate::serving_models::{model, scripted, simulated};
use crate::serving_world::{Serving, WITHOUT_END, assert_ok, assert_refused};

fn slow(name: &str, config: &serde_json::Value, more: &str) -> String {
    let mut all = json!({ "timePerToken": "20ms" });
    for (key, value) in config.as_object().unwrap() {
        all[key] = value.clone();
    }
    simulated(name, &all, more)
}

#[tokio::test]
async fn a_file_that_is_added_is_served_also_of_the_older_group() {
    let gateway = Serving::start(&[]).await;
    assert_refused(&gateway.chat("llama").await, 404, "model_not_found", &["llama"]);
    gateway.home.write("llama.yaml", &simulated("llama", &json!({}), ""));
    let older = simulated("qwen", &json!({}), "");
    let older = older.replace("inference.flexinfer.ai/v1alpha2", "ai.flexinfer/v1alpha2");
    assert!(older.contains("apiVersion: ai.flexinfer/"));
    gateway.home.write("qwen.yml", &older);
    gateway.until("llama", "known", |state| !state.is_null()).await;
    gateway.until("qwen", "known", |state| !state.is_null()).await;
    assert_ok(&gateway.chat("llama").await);
    assert_ok(&gateway.chat("qwen").await);
}

#[tokio::test]
async fn an_edit_for_the_engine_lets_its_stream_finish_and_then_starts_it_afresh() {
    let mut gateway = Serving::start(&[("llama.yaml", &slow("llama", &json!({}), ""))]).await;
    let mut stream = gateway.stream("llama", 60).await;
    let old = gateway.engines();
    gateway.home.write("llama.yaml", &slow("llama", &json!({ "seed": 7 }), ""));
    gateway.until_phase("llama", "Draining").await;
    let mut asked = gateway.ask("llama").await;
    assert!(stream.finish().await, "the stream was cut: {}", stream.text);
    assert_ok(&asked.answer().await.unwrap());
    assert_eq!(gateway.engine_starts("llama"), 2);
    assert!(gateway.log("llama").contains(" --seed 7 "), "{}", gateway.log("llama"));
    assert_ne!(gateway.engines(), old);
    gateway.told("llama: stopping, its file has changed").await;
}

#[tokio::test]
async fn an_edit_that_no_engine_sees_counts_at_once_and_restarts_nothing() {
    let gateway = Serving::start(&[("llama.yaml", &slow("llama", &json!({}), ""))]).await;
    let mut stream = gateway.stream("llama", 60).await;
    let more = "  litellm:\n    aliases: [lama]\n  serverless:\n    idleTimeout: 300ms\n";
    gateway.home.write("llama.yaml", &slow("llama", &json!({ "maxConcurrency": 9 }), more));
    gateway.chat_until("lama", "served", |answer| answer.status() == 200).await;
    assert!(stream.finish().await, "the stream was cut: {}", stream.text);
    gateway.until_phase("llama", "Idle").await;
    assert_eq!(gateway.engine_starts("llama"), 1);
}

#[tokio::test]
async fn a_file_that_is_removed_lets_its_stream_finish_and_takes_nothing_new() {
    let gateway = Serving::start(&[("llama.yaml", &slow("llama", &json!({}), ""))]).await;
    let mut stream = gateway.stream("llama", 80).await;
    gateway.home.remove("llama.yaml");
    gateway.chat_until("llama", "refused", |answer| answer.status() == 404).await;
    assert!(stream.finish().await, "the stream was cut: {}", stream.text);
    gateway.until("llama", "gone", serde_json::Value::is_null).await;
    assert_eq!(gateway.engines().len(), 0);
}

#[tokio::test]
async fn an_edit_with_a_mistake_keeps_the_old_version_and_tells_file_and_line() {
    let mut gateway = Serving::start(&[("llama.yaml", &slow("llama", &json!({}), ""))]).await;
    let stream = gateway.stream("llama", WITHOUT_END).await;
    let broken = slow("llama", &json!({}), "  gpu:\n    priority: urgent\n");
    let line = broken.lines().position(|line| line.contains("urgent")).unwrap() + 1;
    gateway.home.write("llama.yaml", &broken);
    let told = gateway.told(&format!("llama.yaml:{line}")).await;
    assert!(told.contains("priority"), "{told}");
    gateway.told("default/llama stays as it was").await;
    assert_ok(&gateway.chat("llama").await);
    gateway.home.write("llama.yaml", "apiVersion: [");
    gateway.told("llama.yaml:1").await;
    assert_ok(&gateway.chat("llama").await);
    assert_eq!(gateway.engine_starts("llama"), 1);
    drop(stream);
}

#[tokio::test]
async fn an_unknown_backend_is_told_with_the_place_and_the_others_are_served() {
    let files = [
        ("a.yaml", &*model("llama", "lamacpp", &json!({}), "  source: file:///a.gguf\n")),
        ("b.yaml", &*simulated("qwen", &json!({}), "")),
    ];
    let mut gateway = Serving::start(&files).await;
    let told = gateway.told("a.yaml:").await;
    assert!(told.contains("spec.backend") && told.contains("llamacpp"), "{told}");
    assert_ok(&gateway.chat("qwen").await);
    assert_refused(&gateway.chat("llama").await, 404, "model_not_found", &[]);
}

#[tokio::test]
async fn of_two_files_with_one_model_the_first_serves_until_it_is_gone() {
    let first = scripted("llama", "serves", "first", "");
    let second = scripted("llama", "serves", "second", "");
    let mut gateway = Serving::start(&[("a.yaml", &first), ("b.yaml", &second)]).await;
    let told = gateway.told("is defined in").await;
    assert!(told.contains("b.yaml:1") && told.contains("a.yaml:1"), "{told}");
    assert_eq!(gateway.chat("llama").await.json()["arguments"][2], "first");
    gateway.home.remove("a.yaml");
    let second = |answer: &Answer| answer.json()["arguments"][2] == "second";
    gateway.chat_until("llama", "served by the second", second).await;
}
