//! Rules that hold for every backend, the next one too.

use std::collections::HashSet;
use std::time::Duration;

use super::*;

#[test]
fn every_name_and_alias_means_one_backend_whatever_its_case() {
    let mut seen = HashSet::new();
    for backend in Backend::iter() {
        for name in std::iter::once(backend.name()).chain(backend.aliases().iter().copied()) {
            assert!(seen.insert(name), "{name} means two backends");
            assert_eq!(Backend::named(name), Some(backend), "{name}");
            assert_eq!(Backend::named(&name.to_uppercase()), Some(backend), "{name}");
        }
    }
    assert_eq!(Backend::named("gpt"), None);
}

#[test]
fn an_unknown_backend_is_told_with_the_nearest_name() {
    let error = Backend::of(Sample::new("lamacpp", "", json!({})).subject()).expect_err("unknown");
    assert_eq!(error.nearest.as_deref(), Some("llamacpp"));
    insta::assert_snapshot!(error.to_string());
    let error = Backend::of(Sample::new("xyz", "", json!({})).subject()).expect_err("unknown");
    insta::assert_snapshot!(error.to_string());
}

#[test]
fn no_option_is_listed_twice() {
    for backend in Backend::iter() {
        let mut seen = HashSet::new();
        for key in backend.engine().keys().iter().chain(keys::EVERYWHERE) {
            assert!(seen.insert(key.name), "{backend}: {}", key.name);
        }
    }
}

#[test]
fn every_backend_serves_something_and_every_api_is_served() {
    let mut served = HashSet::new();
    for backend in Backend::iter() {
        let apis: HashSet<_> = backend.apis().iter().copied().collect();
        assert_eq!(apis.len(), backend.apis().len(), "{backend} lists an API twice");
        assert!(!apis.is_empty(), "{backend}");
        served.extend(apis);
    }
    for api in Api::iter() {
        assert!(served.contains(&api), "{api}");
        assert!(Backend::Command.apis().contains(&api), "{api} may be served by any engine");
    }
}

#[test]
fn image_backends_idle_and_drain_longer() {
    for backend in Backend::iter() {
        let images = matches!(backend, Backend::Diffusers | Backend::ComfyUi | Backend::VllmOmni);
        let (idle, drain) = if images { (10, 5) } else { (5, 1) };
        assert_eq!(backend.idle_timeout(), Duration::from_mins(idle), "{backend}");
        assert_eq!(backend.drain_limit(), Duration::from_mins(drain), "{backend}");
    }
}

#[test]
fn slots_follow_the_options_and_the_engines_own_default() {
    let slots = |backend, config| {
        let sample = Sample::new(backend, "", config);
        Backend::named(backend).expect("known").slots(sample.subject().config)
    };
    for (backend, config, expected) in [
        ("llamacpp", json!({}), Some(4)),
        ("llamacpp", json!({"parallel": 2}), Some(2)),
        ("llamacpp", json!({"parallel": -1}), Some(4)),
        ("ollama", json!({}), Some(1)),
        ("ollama", json!({"parallel": 3}), Some(3)),
        ("vllm", json!({}), Some(256)),
        ("vllm", json!({"maxNumSeqs": 16}), Some(16)),
        ("mlc", json!({}), Some(4)),
        ("mlc", json!({"mode": "interactive"}), Some(1)),
        ("mlc", json!({"mode": "server"}), None),
        ("diffusers", json!({}), Some(1)),
        ("comfyui", json!({}), None),
        ("simulator", json!({"slots": 2}), Some(2)),
        ("external", json!({}), None),
        ("command", json!({}), None),
    ] {
        assert_eq!(slots(backend, config.clone()), expected, "{backend} {config}");
    }
}

#[test]
fn only_the_external_engine_is_not_started_and_only_ollama_fetches() {
    for backend in Backend::iter() {
        assert_eq!(backend.starts_engine(), backend != Backend::External, "{backend}");
        assert_eq!(backend.fetches_model(), backend == Backend::Ollama, "{backend}");
    }
}

#[test]
fn adapters_are_loaded_by_vllms_calls() {
    let call = Backend::Vllm.load_adapter("poet", "/adapters/poet").expect("a call");
    assert_eq!(call.path, "/v1/load_lora_adapter");
    assert_eq!(call.body, Some(json!({"lora_name": "poet", "lora_path": "/adapters/poet"})));
    let call = Backend::Vllm.unload_adapter("poet").expect("a call");
    assert_eq!(call.body, Some(json!({"lora_name": "poet"})));
    let refusal = json!({"error": {"message": "The lora adapter 'poet' has already been loaded."}});
    assert!(Backend::Vllm.adapter_is_loaded_already(400, &refusal));
    assert!(!Backend::Vllm.adapter_is_loaded_already(404, &json!({"error": "No adapter"})));
    assert_eq!(Backend::LlamaCpp.load_adapter("poet", "/a"), None);
}
