//! Which sources which backend loads, and what the engine calls the model then.

use super::*;

fn complaint(backend: &'static str, source: &'static str, config: Value) -> String {
    Sample::new(backend, source, config).complaints().join("\n")
}

#[test]
fn sources_a_backend_cannot_load_are_refused_with_the_way_out() {
    let told: Vec<_> = [
        ("llamacpp", "oci://ghcr.io/org/writer:v1"),
        ("llamacpp", "HF://org/writer"),
        ("llamacpp", ""),
        ("ollama", "HF://org/writer"),
        ("ollama", "file:///m.gguf"),
        ("vllm", "ollama://qwen3:0.6b"),
        ("vllm", ""),
        ("mlc", "ollama://qwen3:0.6b"),
        ("vllm", "org/writer"),
        ("diffusers", "ollama://qwen3:0.6b"),
        ("vllm-omni", "ollama://qwen3:0.6b"),
    ]
    .into_iter()
    .map(|(backend, source)| complaint(backend, source, json!({})))
    .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn the_gguf_of_a_repository_has_to_be_named_and_be_one() {
    let told: Vec<_> = [
        json!({"ggufFile": "writer.safetensors"}),
        json!({"ggufFile": "../writer.gguf"}),
        json!({"modelFile": "q4/writer.GGUF"}),
    ]
    .into_iter()
    .map(|options| complaint("llamacpp", "hf://org/writer", options))
    .collect();
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn llama_server_reads_what_ollama_would_pull() {
    let told = |source| complaint("llamacpp", source, json!({}));
    assert_eq!(told("ollama://qwen3:0.6b"), "");
    assert!(complaint("vllm", "ollama://qwen3:0.6b", json!({})).contains("cannot load"));
}

#[test]
fn an_artifact_that_may_be_another_tomorrow_is_told() {
    let told = |source| complaint("vllm", source, json!({}));
    let loose = told("oci://ghcr.io/org/writer");
    assert!(loose.contains("warning: spec.source") && loose.contains("@sha256:"), "{loose}");
    assert!(!told("oci://ghcr.io/org/writer:v1").contains("spec.source"));
}

#[test]
fn llama_server_does_not_guess_where_a_file_would_be() {
    let sample = Sample::new("llamacpp", "file:///m.gguf", json!({}));
    let error = sample.launch(&machine("")).expect_err("no file");
    assert!(matches!(error, LaunchError::Place(_)), "{error}");
}

#[test]
fn a_model_is_read_whole() {
    let model: flexinfer_crds::Model = serde_json::from_value(json!({
        "apiVersion": "inference.flexinfer.ai/v1alpha2",
        "kind": "Model",
        "metadata": {"name": "writer"},
        "spec": {
            "backend": "vllm",
            "source": "HF://org/writer",
            "gpu": {"count": 2},
            "kvCache": {"maxBlockSize": 16, "swapSpace": "4"},
            "config": {"maxModelLen": 4096},
        },
    }))
    .expect("a model");
    let subject = Subject::from(&model);
    assert_eq!(subject.name, "writer");
    assert_eq!((subject.block_size, subject.swap_space, subject.wants_gpu), (Some(16), true, true));
    let backend = Backend::of(&model).expect("known");
    let launch = backend.launch(&model, &machine("/m")).expect("a launch");
    assert!(launch.args.ends_with(&["--block-size".to_owned(), "16".to_owned()]), "{launch:?}");
    assert_eq!(backend.served_name(&model).as_deref(), Some("org/writer"));
}

#[test]
fn engines_are_asked_for_the_name_they_know() {
    let name = |backend, source, config| {
        let sample = Sample::new(backend, source, config);
        sample.backend().served_name(sample.subject())
    };
    for (backend, source, config, expected) in [
        ("vllm", "HF://Org/Writer", json!({}), Some("Org/Writer")),
        ("vllm", "HF://Org/Writer@v2:sub/dir", json!({}), Some("Org/Writer")),
        ("vllm", "pvc://claim/a/b", json!({}), Some("/a/b")),
        ("vllm", "file:///models/w", json!({}), Some("/models/w")),
        ("vllm", "HF://o/m", json!({"servedModelName": "w"}), Some("w")),
        ("vllm-omni", "HF://o/m", json!({}), Some("o/m")),
        ("ollama", "ollama://qwen3:0.6b", json!({"servedModelName": "w"}), Some("qwen3:0.6b")),
        ("simulator", "", json!({}), Some("writer")),
        ("llamacpp", "file:///m.gguf", json!({}), None),
        ("mlc", "HF://o/m", json!({}), None),
        ("comfyui", "", json!({}), None),
        ("external", "", json!({"url": "http://b", "servedModelName": "w"}), Some("w")),
        ("external", "", json!({"url": "http://b"}), None),
        ("other", "HF://o/m", json!({"command": "serve"}), None),
    ] {
        let found = name(backend, source, config);
        assert_eq!(found.as_deref(), expected, "{backend} {source}");
    }
}
