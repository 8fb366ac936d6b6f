//! Options of the wrong type, misspelt options, and what is said about them.

use std::time::Duration;

use super::*;

fn complaints(backend: &'static str, source: &'static str, config: Value) -> String {
    Sample::new(backend, source, config).complaints().join("\n")
}

#[test]
fn wrong_types_are_told_with_the_fix() {
    let options = json!({
        "contextSize": "8192", "batchSize": 10.5, "threads": [4], "jinja": "true",
        "chatTemplate": 7, "flashAttention": "sometimes", "maxConcurrency": "8",
        "args": [1], "env": ["A=1"], "startupTimeout": "5 minutes",
    });
    insta::assert_snapshot!(complaints("llamacpp", "file:///m.gguf", options));
}

#[test]
fn a_quoted_number_is_refused_where_the_original_ignored_it() {
    let options = json!({"contextSize": "8192"});
    let sample = Sample::new("llamacpp", "file:///m.gguf", options);
    let error = sample.launch(&machine("/m.gguf")).expect_err("a quoted number");
    assert_eq!(
        error.to_string(),
        "spec.config.contextSize: expected a whole number, found the text \"8192\"; remove the \
         quotes: contextSize: 8192"
    );
}

#[test]
fn no_number_is_suggested_for_what_is_none() {
    for (option, value, expected) in [
        ("contextSize", json!("big"), "a whole number, found the text \"big\""),
        ("contextSize", json!([4]), "a whole number, found a list"),
    ] {
        let told = complaints("llamacpp", "file:///m.gguf", json!({ option: value }));
        let expected = format!(
            "error: spec.config.{option}: expected {expected}; write it in digits, without quotes"
        );
        assert_eq!(told, expected);
    }
    let told = complaints("vllm", "HF://o/m", json!({"gpuMemoryUtilization": "much"}));
    assert!(
        told.ends_with("found the text \"much\"; write it in digits, without quotes"),
        "{told}"
    );
}

#[test]
fn gpu_memory_utilization_may_stand_in_quotes_as_the_original_wanted_it() {
    for value in [json!("0.9"), json!(0.9)] {
        let sample = Sample::new("vllm", "HF://o/m", json!({"gpuMemoryUtilization": value}));
        assert_eq!(sample.complaints(), Vec::<String>::new());
    }
}

#[test]
fn unknown_options_are_warned_of_with_the_nearest_name() {
    let options = json!({"contextsize": 8192, "maxModelLength": 4, "quux": 1, "nothing": null});
    insta::assert_snapshot!(complaints("llamacpp", "file:///m.gguf", options));
}

#[test]
fn options_of_every_backend_are_known_to_every_backend() {
    let everywhere = json!({"maxConcurrency": 4, "preloadOnDeploy": true, "maxInputTokens": 9,
        "maxOutputTokens": 9, "hfRevision": "main", "args": [], "startupTimeout": "90s"});
    let sources = [("vllm", "HF://o/m"), ("ollama", "ollama://m"), ("simulator", "")];
    for (backend, source) in sources {
        assert_eq!(complaints(backend, source, everywhere.clone()), "", "{backend}");
    }
}

#[test]
fn swap_space_is_told_to_be_gone() {
    let mut sample = Sample::new("vllm", "HF://o/m", json!({}));
    sample.swap_space = true;
    insta::assert_snapshot!(sample.complaints().join("\n"));
}

#[test]
fn a_backend_made_for_gpus_warns_a_model_without_one() {
    let mut sample = Sample::new("vllm", "HF://o/m", json!({}));
    sample.wants_gpu = false;
    insta::assert_snapshot!(sample.complaints().join("\n"));
}

#[test]
fn commands_that_cannot_be_split_are_refused() {
    for (command, expected) in [
        (json!(""), "empty"),
        (json!([]), "empty"),
        (json!("server 'open"), "a quote is opened"),
        (json!({"a": 1}), "expected a list of texts"),
    ] {
        let options = json!({"command": command});
        let told = complaints("command", "", options);
        assert!(told.contains(expected), "{command}: {told}");
    }
}

#[test]
fn a_command_that_names_the_model_needs_one() {
    let sample = Sample::new("command", "", json!({"command": ["serve", "{model}"]}));
    let error = sample.launch(&machine("")).expect_err("no model");
    assert_eq!(
        error.to_string(),
        "spec.config.command: uses {model}, and the Model has no spec.source; add one or leave \
         {model} out"
    );
}

#[test]
fn variables_need_names() {
    let sample = Sample::new("command", "", json!({"command": "a", "env": {"A=B": "c"}}));
    let error = sample.launch(&machine("")).expect_err("no name");
    assert_eq!(error.to_string(), "spec.config.env: `A=B` cannot be the name of a variable");
}

#[test]
fn external_urls_are_read_or_refused() {
    let address = |url: &str| {
        let sample = Sample::new("external", "", json!({"url": url}));
        sample.launch(&machine("")).map(|launch| (launch.host, launch.port))
    };
    for (url, host, port) in [
        ("http://127.0.0.1:8000", "127.0.0.1", 8000),
        ("HTTP://gpu-box", "gpu-box", 80),
        ("http://b:8000/v1/", "b", 8000),
        ("http://[::1]:9", "::1", 9),
        ("https://api.example", "api.example", 443),
        ("HTTPS://b:8000/v1", "b", 8000),
    ] {
        assert_eq!(address(url), Ok((host.to_owned(), port)), "{url}");
    }
    for (url, expected) in [
        ("ftp://b:8000", "start with http:// or https://"),
        ("b:8000", "start with http://"),
        ("http://b:8000/api/x", "a path is not supported"),
        ("http://me:secret@b", "credentials"),
        ("http://b:0", "http://host:port"),
        ("http://:80", "http://host:port"),
        ("http://b:port", "http://host:port"),
        ("https://:443", "http://host:port"),
    ] {
        let error = address(url).expect_err(url).to_string();
        assert!(error.contains(expected), "{url}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
}

#[test]
fn startup_limits_come_from_the_model_or_the_backend() {
    let limit = |config: Value| {
        let sample = Sample::new("llamacpp", "file:///m.gguf", config);
        Backend::LlamaCpp.startup_limit(sample.subject().config)
    };
    assert_eq!(limit(json!({})), Duration::from_mins(5));
    assert_eq!(limit(json!({"startupTimeout": "1h30m"})), Duration::from_mins(90));
    let none = complaints("llamacpp", "file:///m.gguf", json!({"startupTimeout": "0"}));
    assert!(none.contains("no engine starts in no time"), "{none}");
}

#[test]
fn the_context_window_is_the_first_that_is_set() {
    let window = |config: Value| {
        let sample = Sample::new("vllm", "HF://o/m", config);
        sample.subject().config.context_window()
    };
    assert_eq!(window(json!({})), None);
    assert_eq!(window(json!({"contextSize": 4096, "maxModelLen": 8192})), Some(8192));
    assert_eq!(window(json!({"maxModelLen": 0, "contextWindowSize": 2048})), Some(2048));
}
