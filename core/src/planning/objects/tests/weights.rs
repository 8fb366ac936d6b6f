//! Where weights are kept, by source and strategy.

use super::super::weights::Held;
use super::*;
use crate::backends::ModelPlace;

fn weights(spec: Value) -> Result<Weights, Refusal> {
    let sample = Sample::new(spec);
    sample.blueprint().map(|blueprint| blueprint.weights().clone())
}

fn from(source: &str, cache: Value) -> Weights {
    let mut spec = json!({ "backend": "vllm", "source": source, "gpu": { "count": 1 } });
    spec["cache"] = cache;
    weights(spec).unwrap()
}

#[test]
fn a_source_on_the_hub_is_fetched_once_onto_a_claim() {
    let weights = from("HF://org/name@refs/pr/1", json!({}));
    let name = "writer-cache".to_owned();
    assert_eq!(weights.held, Held::Claim { name, made_by: ClaimUse::Made });
    assert!(matches!(&weights.filling, Filling::ByJob(works) if works.len() == 1));
    let folder = "/models/huggingface/org/name/refs%2Fpr%2F1";
    assert_eq!(weights.folder.as_deref(), Some(folder));
}

#[test]
fn an_artifact_of_a_registry_is_fetched_as_a_repository_is() {
    let digest = format!("sha256:{}", "0a".repeat(32));
    let weights = from(&format!("oci://reg.test:5000/org/name@{digest}"), json!({}));
    assert!(matches!(&weights.filling, Filling::ByJob(works) if works.len() == 1));
    let folder = format!("/models/oci/reg.test%3A5000/org/name@{}", digest.replace(':', "%3A"));
    assert_eq!(weights.folder, Some(folder));
}

#[test]
fn what_ollama_would_pull_is_fetched_for_an_engine_that_cannot() {
    let of = |backend: &str| {
        weights(json!({ "backend": backend, "source": "ollama://llama3.2:1b" })).unwrap()
    };
    let fetched = of("llamacpp");
    assert!(matches!(&fetched.filling, Filling::ByJob(_)));
    let file = "/models/ollama/registry.ollama.ai/library/llama3.2@1b/model.gguf";
    assert_eq!(fetched.place, ModelPlace::Path(file.to_owned()));
    assert_eq!(of("ollama").filling, Filling::Nothing);
}

#[test]
fn k8s_11_a_changed_source_goes_to_a_folder_of_its_own() {
    let folder = |source| from(source, json!({})).folder.unwrap();
    assert_ne!(folder("HF://org/name"), folder("HF://org/other"));
    assert_ne!(folder("HF://org/name"), folder("HF://org/name@v2"));
}

#[test]
fn a_claim_is_read_where_it_is_unless_a_copy_is_asked_for() {
    let read = from("pvc://weights/a/b", json!({}));
    let name = "weights".to_owned();
    assert_eq!(read.held, Held::Claim { name, made_by: ClaimUse::Source });
    assert_eq!(read.filling, Filling::Checked("/models/a/b".to_owned()));
    assert!(!read.writable);
    for cache in [json!({ "strategy": "SharedPVC" }), json!({ "size": "1Gi" })] {
        let copied = from("pvc://weights/a/b", cache);
        assert!(matches!(copied.filling, Filling::ByJob(_)));
        assert!(matches!(copied.held, Held::Claim { made_by: ClaimUse::Made, .. }));
    }
    let local = from("pvc://weights/a/b", json!({ "strategy": "Local" }));
    assert!(matches!(local.filling, Filling::AtStart(_)));
}

#[test]
fn weights_on_the_claim_that_is_to_hold_them_are_not_copied_but_looked_at() {
    let name = "models".to_owned();
    for strategy in [json!("SharedPVC"), Value::Null] {
        let cache = json!({ "strategy": strategy, "pvcName": " models " });
        let kept = from("pvc://models/llama", cache.clone());
        assert_eq!(kept.filling, Filling::Checked("/models/llama".to_owned()));
        let held = Held::Claim { name: name.clone(), made_by: ClaimUse::Named };
        assert_eq!(kept.held, held, "it may be written to, as before");
        assert!(kept.writable);
        let other = from("pvc://others/llama", cache);
        assert!(matches!(other.filling, Filling::ByJob(_)));
    }
    let local = json!({ "strategy": "Local", "pvcName": "models" });
    assert!(matches!(from("pvc://models/llama", local).filling, Filling::AtStart(_)));
    let smaller = weights(json!({
        "backend": "llamacpp", "source": "pvc://models/llama", "quantize": { "format": "GGUF" },
        "cache": { "strategy": "SharedPVC", "pvcName": "models" },
    }));
    assert!(smaller.unwrap().quantized.is_some(), "the claim is the Model's own to write to");
}

#[test]
fn a_file_is_on_the_node_where_that_is_allowed_else_in_the_image() {
    let there = from("file:///var/lib/flexinfer/models/a/w.gguf", json!({}));
    assert_eq!(there.held, Held::HostFolder("/var/lib/flexinfer/models/a".to_owned()));
    assert_eq!(there.mount, "/var/lib/flexinfer/models/a");
    let elsewhere = from("file:///etc/w.gguf", json!({}));
    assert_eq!(elsewhere.held, Held::Nowhere);
}

#[test]
fn folders_of_nodes_are_not_open_to_every_model() {
    for path in ["/", "/etc", "/var/lib/flexinfer-other", "/var/lib/flexinfer/../..", "relative"] {
        let spec = json!({
            "backend": "vllm", "source": "HF://a/b",
            "cache": { "strategy": "Local", "hostPath": path },
        });
        let refusal = weights(spec).unwrap_err();
        assert!(refusal.message.starts_with("spec.cache.hostPath: "), "{refusal}");
    }
}

#[test]
fn what_cannot_be_kept_is_told_with_the_field() {
    let refusal = |spec| weights(spec).unwrap_err().to_string();
    insta::assert_snapshot!(refusal(json!({ "backend": "vllm", "source": "file://./x" })), @"spec.source: a relative path has a meaning in local mode only; write file:///absolute/path");
    insta::assert_snapshot!(refusal(json!({
        "backend": "vllm", "source": "HF://a/b", "cache": { "pvcName": "Not A Claim" },
    })), @"spec.cache.pvcName: `Not A Claim` cannot be the name of a claim: use a-z, 0-9, `-` and `.`");
    insta::assert_snapshot!(refusal(json!({
        "backend": "diffusers", "source": "pvc://a/b", "config": { "vaeRepo": "a/b" },
    })), @"spec.config.vaeRepo: is fetched beside a source that is downloaded only; put the autoencoder beside the model and name it in config.vaePath");
}

#[test]
fn a_flash_loader_needs_something_that_outlives_the_pod() {
    let loads = |strategy: &str, shared: &str| {
        let sample = Sample::new(json!({
            "backend": "vllm", "source": "HF://a/b",
            "gpu": { "count": 1, "shared": shared },
            "cache": { "strategy": strategy, "flashLoader": { "enabled": true } },
        }))
        .on_nvidia();
        let initial = sample.pod().init_containers.unwrap_or_default();
        initial.iter().any(|container| container.name == "flash-loader")
    };
    assert!(loads("SharedPVC", "") && loads("Local", "") && loads("SharedPVC", "desk"));
    assert!(!loads("Memory", "") && !loads("None", ""));
}

#[test]
fn of_a_gguf_on_a_claim_only_its_own_files_are_copied() {
    let only = |path: &str, backend: &str| {
        let spec = json!({
            "backend": backend, "source": format!("pvc://weights/{path}"),
            "config": { "mmproj": "eyes.gguf" },
        });
        weights(spec).unwrap().only
    };
    assert_eq!(only("w.gguf", "llamacpp"), ["w.gguf", "eyes.gguf"]);
    let parts = only("a/w-00001-of-00003.gguf", "llamacpp");
    assert_eq!(parts, ["w-*-of-00003.gguf", "eyes.gguf"]);
    assert_eq!(only("a", "vllm"), [""; 0]);
    let copied = json!({
        "backend": "llamacpp", "source": "pvc://weights/a/w.gguf", "cache": { "strategy": "SharedPVC" },
    });
    let Filling::ByJob(works) = weights(copied).unwrap().filling else { panic!("it is copied") };
    let (claim, folder) = ("weights".to_owned(), "a".to_owned());
    assert_eq!(works, [Work::Copy { claim, folder, only: vec!["w.gguf".to_owned()] }]);
}

#[test]
fn quantized_weights_lie_where_nothing_else_is_ever_written() {
    let place = |quantize: Value, source: &str| {
        let spec = json!({
            "backend": "vllm", "source": source, "gpu": { "count": 1 }, "quantize": quantize,
        });
        weights(spec).unwrap().folder.unwrap()
    };
    let awq = place(json!({ "format": "AWQ" }), "HF://a/b");
    assert!(awq.starts_with("/models/quantized/writer/awq-w4-g128-"), "{awq}");
    assert_eq!(
        place(json!({ "format": "AWQ", "timeoutSeconds": 60, "useGPU": false }), "HF://a/b"),
        awq
    );
    for (quantize, source) in [
        (json!({ "format": "AWQ", "bits": 8 }), "HF://a/b"),
        (json!({ "format": "AWQ", "calibration": { "maxSamples": 8 } }), "HF://a/b"),
        (json!({ "format": "AWQ" }), "HF://a/b@v2"),
        (json!({ "format": "FP8" }), "HF://a/b"),
    ] {
        assert_ne!(place(quantize.clone(), source), awq, "{quantize} {source}");
    }
}

#[test]
fn what_cannot_be_quantized_is_told_with_the_field() {
    let refusal = |mut spec: Value| {
        spec["quantize"] = json!({ "format": "GGUF" });
        Sample::new(spec).on_nvidia().try_deployment().unwrap_err().to_string()
    };
    let memory = json!({
        "backend": "llamacpp", "source": "HF://a/b", "gpu": { "count": 1, "shared": "desk" },
    });
    insta::assert_snapshot!(refusal(memory), @"spec.quantize: needs weights that are fetched to a claim of the model's own; write cache: {strategy: SharedPVC} with a source HF:// or pvc://, or leave quantize out");
    let claim = json!({ "backend": "llamacpp", "source": "pvc://a/b.gguf" });
    assert!(refusal(claim).contains("needs weights that are fetched"));
    let eyes =
        json!({ "backend": "llamacpp", "source": "HF://a/b", "config": { "mmproj": "eyes.gguf" } });
    insta::assert_snapshot!(refusal(eyes), @"spec.config.mmproj: is looked for beside the quantized weights and is not there; have it fetched by config.hfAllowPatterns and write its whole path below /models");
    let format = json!({ "backend": "mlc-llm", "source": "HF://a/b" });
    insta::assert_snapshot!(refusal(format), @"spec.quantize: mlc-llm loads no weights that are made for it; leave it out");
}

#[test]
fn a_quantizer_that_needs_a_gpu_is_not_made_for_a_model_without() {
    let spec = json!({
        "backend": "simulator", "source": "HF://a/b", "quantize": { "format": "AWQ" },
    });
    let sample = Sample::new(spec);
    let refusal = sample.blueprint().unwrap().quantizing_job("c1").unwrap_err();
    assert!(
        refusal.message.starts_with("spec.quantize.useGPU: making AWQ takes a GPU"),
        "{refusal}"
    );
}
