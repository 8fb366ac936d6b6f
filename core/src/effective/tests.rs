//! What Models mean, as tables: a spec, and what comes of it.

use serde_json::{Value, json};

use super::*;

fn model(spec: Value) -> Model {
    let mut whole = json!({ "backend": "vllm", "source": "HF://org/model" });
    let Value::Object(fields) = spec else { panic!("not an object: {spec}") };
    whole.as_object_mut().unwrap().extend(fields);
    Model::new("small", serde_json::from_value(whole).unwrap())
}

fn meaning(spec: Value) -> Effective {
    Effective::of(&model(spec), 1, &Defaults::default()).unwrap()
}

fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

#[test]
fn a_model_that_says_nothing_sleeps_alone_and_wakes_one_engine() {
    let meaning = meaning(json!({}));
    let id = ModelId::new("default", "small");
    assert_eq!(meaning.group, GroupId::Alone(id.clone()));
    assert_eq!(meaning.id, id);
    assert_eq!((meaning.min_replicas, meaning.max_replicas), (0, 1));
    assert_eq!(meaning.priority, 100);
    assert_eq!(meaning.swap_cooldown, minutes(5));
    assert_eq!(meaning.idle_timeout, Backend::Vllm.idle_timeout());
    assert_eq!(meaning.drain_limit, Backend::Vllm.drain_limit());
    assert_eq!(meaning.startup_limit, Backend::Vllm.startup_limit(Config::default()));
    assert_eq!(meaning.cold_start_timeout, None);
    assert_eq!(meaning.max_queue, None);
    assert_eq!(meaning.vram_estimate_mib, None);
    let claims = [meaning.parked, meaning.preload, meaning.force_promotion, meaning.warm_primary];
    assert_eq!(claims, [false; 4]);
}

#[test]
fn replicas_follow_serverless() {
    for (serverless, replicas) in [
        (json!({}), (0, 1)),
        (json!({ "enabled": true, "minReplicas": 2 }), (2, 2)),
        (json!({ "enabled": false }), (1, 1)),
        (json!({ "enabled": false, "minReplicas": 0, "maxReplicas": 4 }), (1, 4)),
        (json!({ "enabled": false, "minReplicas": 3 }), (3, 3)),
        (json!({ "minReplicas": 3, "maxReplicas": 2 }), (3, 3)),
        (json!({ "maxReplicas": 5 }), (0, 5)),
    ] {
        let meaning = meaning(json!({ "serverless": serverless }));
        assert_eq!((meaning.min_replicas, meaning.max_replicas), replicas, "{serverless}");
    }
}

#[test]
fn what_a_model_says_counts_more_than_a_default_even_if_it_is_zero() {
    let meaning = meaning(json!({
        "gpu": { "priority": 0, "swapCooldown": "0", "drainTimeout": "0s" },
        "serverless": { "idleTimeout": "0s", "coldStartTimeout": "2m" },
        "config": { "startupTimeout": "9m" },
    }));
    assert_eq!(meaning.priority, 0);
    assert_eq!(meaning.swap_cooldown, Duration::ZERO);
    assert_eq!(meaning.drain_limit, Duration::ZERO);
    assert_eq!(meaning.idle_timeout, Duration::ZERO);
    assert_eq!(meaning.cold_start_timeout, Some(minutes(2)));
    assert_eq!(meaning.startup_limit, minutes(9));
}

#[test]
fn a_group_is_of_its_namespace_and_never_of_the_processor() {
    let shared = GroupId::Shared { namespace: "default".into(), name: "card".into() };
    let alone = GroupId::Alone(ModelId::new("default", "small"));
    for (gpu, group) in [
        (json!({ "shared": "card" }), &shared),
        (json!({ "shared": " card " }), &shared),
        (json!({ "shared": "" }), &alone),
        (json!({ "count": 1 }), &alone),
        (json!({ "shared": "card", "vendor": "cpu" }), &alone),
    ] {
        assert_eq!(&meaning(json!({ "gpu": gpu })).group, group, "{gpu}");
    }
}

#[test]
fn preloading_is_for_models_that_share_with_nobody() {
    let config = json!({ "preloadOnDeploy": true });
    assert!(meaning(json!({ "config": config })).preload);
    assert!(!meaning(json!({ "config": config, "gpu": { "shared": "card" } })).preload);
}

#[test]
fn a_vram_estimate_counts_for_every_gpu() {
    for (gpu, estimate) in [
        (json!({ "vramEstimateMB": 9000 }), Some(9000)),
        (json!({ "vramEstimateMB": 9000, "count": 2 }), Some(18_000)),
        (json!({ "count": 2 }), None),
    ] {
        assert_eq!(meaning(json!({ "gpu": gpu })).vram_estimate_mib, estimate, "{gpu}");
    }
}

#[test]
fn slots_are_the_models_own_or_its_backends() {
    assert_eq!(meaning(json!({ "config": { "maxConcurrency": 3 } })).slots, Some(3));
    let options = json!({ "parallel": 2 });
    let source = json!("file:///models/a.gguf");
    let meaning = meaning(json!({ "backend": "llamacpp", "source": source, "config": options }));
    let config = options.as_object();
    assert_eq!(meaning.slots, Backend::LlamaCpp.slots(Config::of(config)));
}

#[test]
fn names_are_trimmed_and_each_counts_once() {
    let meaning = meaning(json!({
        "litellm": {
            "enabled": false,
            "servedModelName": " gpt-4o ",
            "aliases": ["small", "gpt-4o", "", "other", "other "],
            "copilotAlias": "copilot",
        },
        "serviceLabels": ["chat ", "chat"],
    }));
    assert_eq!(meaning.aliases, ["gpt-4o", "other"]);
    assert_eq!(meaning.service_labels, ["chat"]);
    assert!(meaning.parked);
}

#[test]
fn the_namespace_is_the_objects_own_before_the_processes() {
    let mut object = model(json!({}));
    let defaults = Defaults { namespace: "mine".into() };
    assert_eq!(&*Effective::of(&object, 1, &defaults).unwrap().id.namespace, "mine");
    object.metadata.namespace = Some("theirs".into());
    assert_eq!(&*Effective::of(&object, 1, &defaults).unwrap().id.namespace, "theirs");
}

#[test]
fn the_queue_bound_is_an_annotation() {
    for (text, bound) in [("0", Some(0)), (" 25 ", Some(25))] {
        let mut object = model(json!({}));
        object.metadata.annotations = Some([(keys::MAX_QUEUE.into(), text.into())].into());
        let meaning = Effective::of(&object, 1, &Defaults::default()).unwrap();
        assert_eq!(meaning.max_queue, bound);
    }
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let mut object = model(json!({
        "backend": "vlm",
        "config": { "maxConcurrency": 0, "preloadOnDeploy": "yes" },
    }));
    object.metadata.annotations = Some([(keys::MAX_QUEUE.into(), "-1".into())].into());
    let complaints = Effective::of(&object, 1, &Defaults::default()).unwrap_err();
    let complaints: Vec<_> = complaints.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(complaints.join("\n"));
}

#[test]
fn an_engine_is_spoken_to_in_the_protocol_that_its_model_says() {
    let spoken = |url: Option<&str>, protocol: Option<&str>| {
        let mut config = json!({});
        if let Some(protocol) = protocol {
            config["engineProtocol"] = protocol.into();
        }
        let mut spec = json!({ "config": config });
        if let Some(url) = url {
            spec["backend"] = "external".into();
            spec["config"]["url"] = url.into();
        }
        let object = model(spec);
        let spoken = Effective::of(&object, 1, &Defaults::default()).map(|meaning| meaning.spoken);
        assert_eq!(spoken.clone().unwrap_or_default(), Spoken::to(&object));
        spoken.map_err(|wrong| wrong.iter().map(ToString::to_string).collect::<String>())
    };
    let as_said = |protocol, tls_name: Option<&str>| {
        Ok(Spoken { protocol, tls_name: tls_name.map(str::to_owned) })
    };
    let (plain, secured) = (Some("http://engine:8000"), Some("https://api.example/v1"));
    assert_eq!(spoken(None, None), as_said(EngineProtocol::Http1, None));
    assert_eq!(spoken(None, Some("h2c")), as_said(EngineProtocol::H2c, None));
    assert_eq!(spoken(plain, None), as_said(EngineProtocol::Http1, None));
    assert_eq!(spoken(secured, None), as_said(EngineProtocol::Alpn, Some("api.example")));
    assert_eq!(spoken(secured, Some("h2")), as_said(EngineProtocol::H2, Some("api.example")));
    assert_eq!(spoken(secured, Some("http1")), as_said(EngineProtocol::Http1, Some("api.example")));
    for (url, protocol, told) in [
        (None, "spdy", "`spdy` is not known; write one of http1, h2c, h2, alpn"),
        (plain, "h2", "write h2c for HTTP/2"),
        (secured, "h2c", "write h2"),
    ] {
        let wrong = spoken(url, Some(protocol)).unwrap_err();
        assert!(
            wrong.starts_with("spec.config.engineProtocol: ") && wrong.ends_with(told),
            "{wrong}"
        );
    }
}
