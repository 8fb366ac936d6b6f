//! Questions as an API server asks them, and the answers that it and a person get.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flexinfer_crds::Model;
use flexinfer_crds::model::broken_rules;
use serde_json::{Value, json};

use super::{set_defaults, validate};
use crate::planning::objects::Settings;

/// A Model with this spec, as the server shows it.
fn model(spec: &Value) -> Value {
    json!({
        "apiVersion": "inference.flexinfer.ai/v1alpha2",
        "kind": "Model",
        "metadata": { "name": "m", "namespace": "models" },
        "spec": spec,
    })
}

fn question(operation: &str, object: &Value, old: &Value) -> Vec<u8> {
    let object_kind =
        [object, old].iter().find_map(|object| object["kind"].as_str()).unwrap_or("Model");
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "7",
            "kind": { "group": "inference.flexinfer.ai", "version": "v1alpha2", "kind": object_kind },
            "operation": operation,
            "name": "m",
            "object": object,
            "oldObject": old,
        },
    })
    .to_string()
    .into_bytes()
}

fn created(object: &Value) -> Value {
    validate(&question("CREATE", object, &Value::Null), &Settings::default()).unwrap()["response"]
        .take()
}

fn edited(old: &Value, new: &Value) -> Value {
    validate(&question("UPDATE", new, old), &Settings::default()).unwrap()["response"].take()
}

#[test]
fn a_model_that_can_work_may_be_stored() {
    let answer = created(&model(&json!({ "backend": "simulator" })));
    assert_eq!(answer, json!({ "uid": "7", "allowed": true, "warnings": [] }));
}

#[test]
fn a_faulty_model_is_refused_with_each_field_and_what_to_write() {
    let spec = json!({
        "backend": "vllm",
        "source": "hf:/org/model",
        "config": { "maxModelLen": "long", "maxConcurrency": 0 },
    });
    let mut faulty = model(&spec);
    faulty["metadata"]["annotations"] = json!({ "flexinfer.ai/max-queue": "many" });
    insta::assert_json_snapshot!(created(&faulty));
}

#[test]
fn a_typing_mistake_in_the_backend_is_told_with_the_nearest_name() {
    let answer = created(&model(&json!({ "backend": "simulatr", "source": "HF://org/model" })));
    assert_eq!(answer["allowed"], false);
    assert_eq!(answer["status"]["details"]["causes"][0]["field"], "spec.backend");
    assert!(answer["status"]["message"].as_str().unwrap().contains("simulator"), "{answer}");
}

#[test]
fn load_10_sources_outside_the_grammar_are_refused() {
    for source in
        ["HF://", "HF://org", "HF://org/name@a b", "oci://reg:5000/A/b", "pvc:///x", "ollama://"]
    {
        let answer = created(&model(&json!({ "backend": "vllm", "source": source })));
        assert_eq!(
            answer["status"]["details"]["causes"][0]["field"], "spec.source",
            "{source}: {answer}"
        );
    }
    for source in
        ["HF://Org/Name@refs/pr/1", "HF://Org/Name@main:sub dir/a+b.gguf", "pvc://claim/a"]
    {
        let answer = created(&model(&json!({ "backend": "vllm", "source": source })));
        assert_eq!(answer["allowed"], true, "{source}: {answer}");
    }
}

#[test]
fn what_the_controller_would_refuse_to_make_is_refused_at_once() {
    let elsewhere = json!({ "strategy": "Local", "hostPath": "/etc" });
    let answer =
        created(&model(&json!({ "backend": "vllm", "source": "HF://a/b", "cache": elsewhere })));
    let message = answer["status"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("spec.cache.hostPath: "), "{answer}");
    assert!(message.contains("/var/lib/flexinfer"), "{answer}");
}

#[test]
fn what_is_only_odd_is_a_warning() {
    let answer = created(&model(
        &json!({ "backend": "vllm", "source": "HF://a/b", "config": { "maxModelLne": 1 } }),
    ));
    assert_eq!(answer["allowed"], true);
    assert!(answer["warnings"][0].as_str().unwrap().contains("maxModelLen"), "{answer}");
}

#[test]
fn a_name_that_the_server_will_make_is_no_missing_name() {
    let mut unnamed = model(&json!({ "backend": "simulator" }));
    unnamed["metadata"] = json!({ "generateName": "chat-" });
    assert_eq!(created(&unnamed)["allowed"], true);
}

#[test]
fn k8s_14_what_was_broken_before_holds_up_no_edit_of_anything_else() {
    let broken = model(&json!({ "backend": "simulatr", "source": "HF://org/model" }));
    let mut labelled = broken.clone();
    labelled["metadata"]["labels"] = json!({ "team": "a" });
    let answer = edited(&broken, &labelled);
    assert_eq!(answer["allowed"], true);
    assert!(answer["warnings"][0].as_str().unwrap().contains("simulator"), "{answer}");
    let mut worse = labelled;
    worse["spec"]["source"] = json!("nowhere");
    worse["spec"]["backend"] = json!("vllm");
    assert_eq!(edited(&broken, &worse)["allowed"], false);
}

#[test]
fn k8s_14_a_model_that_is_leaving_may_leave() {
    let whole = model(&json!({ "backend": "simulator" }));
    let mut leaving = model(&json!({ "backend": "simulatr", "source": "x" }));
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(edited(&whole, &leaving)["allowed"], true);
    let deleted =
        validate(&question("DELETE", &Value::Null, &leaving), &Settings::default()).unwrap();
    assert_eq!(deleted["response"]["allowed"], true);
}

#[test]
fn an_adapter_is_judged_too() {
    let adapter = |uri: &str| {
        json!({
            "apiVersion": "inference.flexinfer.ai/v1alpha2",
            "kind": "LoRAAdapter",
            "metadata": { "name": "a" },
            "spec": { "modelRef": "m", "adapterName": "sql", "source": { "type": "HuggingFace", "uri": uri } },
        })
    };
    assert_eq!(created(&adapter("org/sql"))["allowed"], true);
    let answer = created(&adapter("sql"));
    assert_eq!(answer["status"]["details"]["causes"][0]["field"], "spec.source.uri", "{answer}");
}

#[test]
fn what_is_no_question_is_told() {
    for body in [&b"{}"[..], b"", b"{\"request\":{}}", b"[]"] {
        let error = validate(body, &Settings::default()).unwrap_err();
        assert!(error.to_string().contains("AdmissionReview"), "{error}");
        assert!(set_defaults(body).is_err(), "{body:?}");
    }
}

#[test]
fn a_kind_that_is_not_ours_is_let_through() {
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" }, "spec": {} });
    assert_eq!(created(&pod)["allowed"], true);
    let answer = set_defaults(&question("CREATE", &pod, &Value::Null)).unwrap();
    assert_eq!(answer["response"]["patch"], Value::Null);
}

/// The object after what `set_defaults` writes.
fn defaulted(object: &Value) -> Value {
    let answer = set_defaults(&question("CREATE", object, &Value::Null)).unwrap();
    let mut written = object.clone();
    let Some(patch) = answer["response"]["patch"].as_str() else { return written };
    assert_eq!(answer["response"]["patchType"], "JSONPatch");
    let patch: Vec<Value> = serde_json::from_slice(&STANDARD.decode(patch).unwrap()).unwrap();
    for change in patch {
        assert_eq!(change["op"], "add");
        let (parent, field) = change["path"].as_str().unwrap().rsplit_once('/').unwrap();
        written.pointer_mut(parent).unwrap()[field] = change["value"].clone();
    }
    written
}

#[test]
fn what_decides_between_the_members_of_a_group_is_written_down() {
    let shares =
        model(&json!({ "backend": "simulator", "gpu": { "shared": "gpu0", "priority": null } }));
    let gpu = defaulted(&shares)["spec"]["gpu"].clone();
    assert_eq!(gpu, json!({ "shared": "gpu0", "priority": 100, "swapCooldown": "5m" }));
    let said = model(
        &json!({ "backend": "simulator", "gpu": { "shared": "gpu0", "priority": 0, "swapCooldown": "0" } }),
    );
    assert_eq!(defaulted(&said), said);
}

#[test]
fn nothing_else_is_written() {
    for spec in [
        json!({ "backend": "simulator" }),
        json!({ "backend": "simulator", "gpu": {} }),
        json!({ "backend": "simulator", "gpu": { "shared": " " } }),
        json!({ "backend": "simulator", "gpu": { "shared": "gpu0", "vendor": "cpu" } }),
        json!({ "backend": 7, "gpu": "all" }),
    ] {
        assert_eq!(defaulted(&model(&spec)), model(&spec));
    }
}

/// What is written stays when its author edits around it, so it must never be what an edit breaks a rule with.
#[test]
fn k8s_02_what_was_written_keeps_no_later_edit_from_being_made() {
    let spec = json!({ "backend": "vllm", "source": "HF://a/b", "gpu": { "shared": "gpu0" } });
    let before: Model = serde_json::from_value(defaulted(&model(&spec))).unwrap();
    for (field, value) in [
        ("shared", json!("")),
        ("vendor", json!("nvidia")),
        ("count", json!(8)),
        ("vramEstimateMB", json!(1)),
        ("warmPolicy", json!("primary")),
    ] {
        let mut edited = serde_json::to_value(&before).unwrap();
        edited["spec"]["gpu"][field] = value;
        let edited: Model = serde_json::from_value(edited).unwrap();
        assert_eq!(broken_rules(&edited.spec), [], "{field}");
    }
    let mut moved = serde_json::to_value(&before).unwrap();
    moved["spec"]["gpu"]["vendor"] = json!("cpu");
    moved["spec"]["gpu"]["shared"] = json!("");
    let moved: Model = serde_json::from_value(moved).unwrap();
    assert_eq!(broken_rules(&moved.spec), []);
}
