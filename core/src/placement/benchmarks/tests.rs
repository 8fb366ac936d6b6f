//! Results, as they are written and found again.

use serde_json::Value;

use super::*;

fn subject() -> Subject {
    let labels = [
        (keys::GPU_VENDOR, "NVIDIA"),
        (keys::GPU_ARCHITECTURE, "sm_89"),
        (keys::GPU_VRAM, "24Gi"),
        (keys::GPU_COUNT, "2"),
        (keys::GPU_INT4, "true"),
    ];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    Subject {
        namespace: "models".to_owned(),
        backend: "vllm".to_owned(),
        model: "org/name".to_owned(),
        device_class: DeviceClass::of_node(&labels),
    }
}

fn measured() -> Measured {
    Measured {
        tokens_per_second: 49.996,
        completion_tokens: 640,
        duration_seconds: 12.8,
        samples: 5,
        latency_ms: Some(2560.0),
        timestamp: "2026-01-02T03:04:05Z".to_owned(),
        configuration: Some("c0ffee".to_owned()),
    }
}

#[test]
fn the_key_is_the_beginning_of_the_digest_of_backend_model_and_class() {
    let subject = subject();
    assert_eq!(
        subject.device_class.to_string(),
        "vendor=NVIDIA,arch=sm_89,vram=24Gi,count=2,int4=true"
    );
    // printf 'vllm|org/name|vendor=NVIDIA,arch=sm_89,vram=24Gi,count=2,int4=true' | sha256sum
    assert_eq!(subject.key(), "bench_dc65cca78c40f372a562c8c35a1198d7");
}

#[test]
fn a_node_without_labels_is_a_class_of_its_own_and_the_older_label_counts() {
    assert_eq!(
        DeviceClass::default().to_string(),
        "vendor=,arch=,vram=,count=,int4=",
        "every part is named"
    );
    let older = [(keys::GPU_ARCHITECTURE_OLDER.to_owned(), "gfx1100".to_owned())];
    let class = DeviceClass::of_node(&older.into());
    assert!(class.to_string().contains("arch=gfx1100"));
}

#[test]
fn a_result_is_found_again_by_its_subject_alone() {
    let entries = subject().entries(&measured());
    let own = found(&entries, &subject()).unwrap();
    assert_eq!((own.tokens_per_second, own.duration_seconds()), (50.0, Some(12.8)));
    assert_eq!((own.latency_ms(), own.configuration()), (Some(2560.0), Some("c0ffee")));
    let other = Subject { model: "org/other".to_owned(), ..subject() };
    assert_eq!(found(&entries, &other), None);
    let meta = entries.get(&format!("meta_{}", subject().key())).unwrap();
    let meta = serde_json::from_str::<Value>(meta).unwrap();
    assert_eq!(meta["deviceClass"], subject().device_class.to_string());
    assert_eq!((&meta["completionTokens"], &meta["namespace"]), (&640.into(), &"models".into()));
}

#[test]
fn models_of_one_name_in_two_namespaces_have_each_their_own() {
    let (ours, theirs) = (subject(), Subject { namespace: "others".to_owned(), ..subject() });
    assert_eq!(ours.key(), theirs.key(), "the original's key tells no namespace");
    let mut entries = ours.entries(&measured());
    assert_eq!(found(&entries, &theirs), None, "measured of somebody else");
    entries.extend(theirs.entries(&Measured { tokens_per_second: 7.0, ..measured() }));
    let rate = |subject| found(&entries, subject).map(|found| found.tokens_per_second);
    assert_eq!((rate(&ours), rate(&theirs)), (Some(50.0), Some(7.0)));
}

#[test]
fn a_result_of_the_originals_says_nothing_of_answers_and_may_be_anybodys() {
    let original = r#"{"tokensPerSecond":50.0,"durationSeconds":12.8}"#.to_owned();
    let key = subject().key();
    let entries = BTreeMap::from([(format!("meta_{key}"), original), (key, "50.00".to_owned())]);
    let original = found(&entries, &subject()).unwrap();
    assert_eq!((original.latency_ms(), original.configuration()), (None, None));
    assert_eq!(original.namespace(), None);
    let none = Measured { latency_ms: None, configuration: None, ..measured() };
    let says = |what| subject().entries(&none).into_values().any(|entry| entry.contains(what));
    assert!(!says("avgLatency") && !says("configuration"), "what nobody has measured");
}

#[test]
fn garbage_in_the_results_is_no_rate() {
    for garbage in ["", "fast", "NaN", "inf", "-1"] {
        let entries = BTreeMap::from([(subject().key(), garbage.to_owned())]);
        assert_eq!(found(&entries, &subject()), None, "{garbage:?}");
    }
}

#[test]
fn the_map_of_a_deployment_has_the_originals_keys() {
    let method = Method {
        warmup_iterations: 2,
        iterations: 5,
        batch_size: 128,
        min_duration: "30s".to_owned(),
    };
    let map = subject().of_deployment(&measured(), &method);
    let keys = map.keys().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(
        keys,
        [
            "backend",
            "batchSize",
            "completionTokens",
            "durationSeconds",
            "iterations",
            "minDuration",
            "model",
            "samples",
            "timestamp",
            "tokensPerSecond",
            "warmupIterations",
        ]
    );
    assert_eq!(map["tokensPerSecond"], "50.00");
}
