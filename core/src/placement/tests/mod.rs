//! Which nodes can hold a pod, and which suits it best.

mod filtering;
mod promised;
mod scoring;

use std::collections::BTreeMap;

use flexinfer_crds::keys;
use k8s_openapi::api::core::v1 as api;
use serde_json::{Value, json};

use super::*;

/// A node with two free GPUs of 24 GiB, and what the pairs say over it. Keys of labels and annotations are
/// told apart by themselves.
fn node(texts: &[(&str, &str)]) -> Node {
    let mut labels = owned(&[
        (keys::GPU_VENDOR, "NVIDIA"),
        (keys::GPU_ARCHITECTURE, "sm_89"),
        (keys::GPU_VRAM, "24Gi"),
        (keys::GPU_COUNT, "2"),
        (keys::GPU_INT4, "true"),
    ]);
    let mut annotations = owned(&[(keys::GPU_FREE_MEMORY, "49152")]);
    for (key, value) in owned(texts) {
        match labels.get_mut(&key) {
            Some(label) => *label = value,
            None => drop(annotations.insert(key, value)),
        }
    }
    labels.retain(|_, value| value != "-");
    annotations.retain(|_, value| value != "-");
    Node::read(&labels, &annotations, [])
}

fn owned(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
    texts.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// A pod of a vLLM that asks for so many NVIDIA GPUs with so much memory on each, changed by `change`.
fn object(gpus: u64, memory: &str, change: &Value) -> api::Pod {
    let mut pod = json!({
        "metadata": {
            "namespace": "models",
            "name": "engine",
            "uid": "u-1",
            "labels": { keys::MODEL: "llama", keys::BACKEND: "vllm" },
            "annotations": { keys::VRAM_ESTIMATE: memory },
        },
        "spec": {
            "containers": [
                { "name": "engine", "resources": { "limits": { "nvidia.com/gpu": gpus.to_string() } } },
            ],
        },
    });
    merge(&mut pod, change);
    serde_json::from_value(pod).unwrap()
}

fn merge(into: &mut Value, change: &Value) {
    match change.as_object() {
        Some(fields) => {
            for (key, value) in fields {
                merge(&mut into[key], value);
            }
        }
        None => *into = change.clone(),
    }
}

fn pod(gpus: u64, memory: &str) -> Pod {
    changed(gpus, memory, &json!({}))
}

fn changed(gpus: u64, memory: &str, change: &Value) -> Pod {
    Pod::read(&object(gpus, memory, change), None)
}
