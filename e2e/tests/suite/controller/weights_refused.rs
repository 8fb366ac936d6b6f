//! Files that are refused while an engine of the Model serves: it serves on, what is wrong with them is told, and the
//! model goes on once that is mended.

use std::fs;

use flexinfer_crds::ModelStatus;
use flexinfer_crds::model::Phase;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::weights::Shelf;
use crate::shared::eventually;

/// A claim with what is fetched of `HF://org/name`, and in a folder of its own weights that are cut off.
async fn claim(shelf: &Shelf) -> std::path::PathBuf {
    shelf.apply("first", "HF://org/name", &json!({})).await;
    shelf.ready("first").await;
    let broken = shelf.on("first-cache", "broken").await;
    fs::create_dir_all(&broken).unwrap();
    fs::write(broken.join("model.safetensors"), "cut").unwrap();
    fs::write(broken.join("model.bin"), "{}").unwrap();
    broken
}

const WHOLE: &str = "pvc://first-cache/huggingface/org/name/main";

fn condition<'s>(status: &'s ModelStatus, kind: &str) -> (&'s str, &'s str, &'s str) {
    let found = status.conditions.iter().find(|condition| condition.type_ == kind);
    found.map_or_else(Default::default, |found| (&*found.status, &*found.reason, &*found.message))
}

/// The model `m`, once this condition is false and names the weights that are cut off. It serves all the while.
async fn told(shelf: &Shelf, kind: &str) -> ModelStatus {
    let is = |status: &ModelStatus| {
        let (held, _, said) = condition(status, kind);
        held == "False" && said.contains("model.safetensors")
    };
    let status = shelf.desk.until("told what is wrong with its files", "m", is).await;
    assert_eq!(status.phase, Some(Phase::Ready), "{status:#?}");
    status
}

async fn only_pod(shelf: &Shelf) -> String {
    let pods = shelf.desk.pods("m").await;
    let names: Vec<String> = pods.iter().map(kube::ResourceExt::name_any).collect();
    assert_eq!(names.len(), 1, "{names:?}");
    names[0].clone()
}

#[tokio::test]
async fn an_engine_serves_on_as_it_is_while_the_files_are_refused_that_the_model_now_names() {
    let shelf = Shelf::new().await;
    let broken = claim(&shelf).await;
    shelf.apply("m", WHOLE, &json!({})).await;
    shelf.ready("m").await;
    let serving = only_pod(&shelf).await;
    shelf.apply("m", "pvc://first-cache/broken", &json!({})).await;
    let status = told(&shelf, "Cached").await;
    let message = status.message.unwrap();
    assert!(message.ends_with("what ran before serves on"), "{message}");
    assert_eq!(only_pod(&shelf).await, serving);

    fs::remove_file(broken.join("model.safetensors")).unwrap();
    let cached = |status: &ModelStatus| {
        let is_ready = status.phase == Some(Phase::Ready);
        is_ready && condition(status, "Cached").0 == "True"
    };
    shelf.desk.until("served from the files that were mended", "m", cached).await;
    eventually("another engine reads them, and the one before is gone", async || {
        let pods = shelf.desk.pods("m").await;
        pods.iter().all(|pod| pod.name_any() != serving).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_further_replica_whose_loader_refuses_the_files_leaves_the_first_as_it_is() {
    let shelf = Shelf::new().await;
    let broken = claim(&shelf).await;
    let weights = broken.join("model.safetensors");
    fs::remove_file(&weights).unwrap();
    let loaded = |replicas: u32| -> Value {
        json!({
            "cache": { "flashLoader": { "enabled": true } },
            "serverless": { "minReplicas": replicas, "maxReplicas": 2 },
        })
    };
    shelf.apply("m", "pvc://first-cache/broken", &loaded(1)).await;
    shelf.ready("m").await;
    let serving = only_pod(&shelf).await;
    fs::write(&weights, "cut").unwrap();
    shelf.apply("m", "pvc://first-cache/broken", &loaded(2)).await;
    let status = told(&shelf, "Scaled").await;
    assert_eq!(condition(&status, "Scaled").1, "InitContainerFailed");
    assert!(shelf.desk.pods("m").await.iter().any(|pod| pod.name_any() == serving));

    fs::remove_file(&weights).unwrap();
    let scaled = |status: &ModelStatus| condition(status, "Scaled").0 == "True";
    shelf.desk.until("served by both", "m", scaled).await;
}
