//! Every rule over several fields, broken and kept before the API server that evaluates it.

use std::collections::BTreeSet;

use flexinfer_crds::Model;
use kube::CustomResourceExt;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::{Models, model};

/// Per rule a spec that breaks it alone, and one as near to it as can be that keeps it.
fn broken_and_kept() -> Vec<(Value, Value)> {
    vec![
        (json!({ "backend": "vllm" }), json!({ "backend": "external" })),
        (
            vllm("pvc://claim/a", &json!({ "cache": { "strategy": "Memory" } })),
            vllm("HF://a/b", &json!({ "cache": { "strategy": "Memory" } })),
        ),
        (
            vllm("HF://a/b", &json!({ "resources": { "limits": { "nvidia.com/gpu": 1 } } })),
            vllm("HF://a/b", &json!({ "resources": { "limits": { "memory": "8Gi" } } })),
        ),
        (
            vllm("HF://a/b", &json!({ "resources": { "requests": { "amd.com/gpu": "1" } } })),
            vllm("HF://a/b", &json!({ "resources": { "requests": { "cpu": 1 } } })),
        ),
        (on_nodes_with("nvidia", "amd"), on_nodes_with("amd", "amd")),
        (
            vllm("HF://a/b", &json!({ "gpu": { "vendor": "cpu", "shared": "one" } })),
            vllm("HF://a/b", &json!({ "gpu": { "vendor": "cpu", "shared": "" } })),
        ),
        (
            vllm("HF://a/b", &json!({ "gpu": { "vendor": "cpu", "count": 1 } })),
            vllm("HF://a/b", &json!({ "gpu": { "vendor": "nvidia", "count": 1 } })),
        ),
        (
            vllm("HF://a/b", &json!({ "gpu": { "vendor": "cpu", "vramEstimateMB": 1 } })),
            vllm("HF://a/b", &json!({ "gpu": { "vramEstimateMB": 1 } })),
        ),
        (
            vllm("HF://a/b", &json!({ "serverless": { "minReplicas": 3, "maxReplicas": 2 } })),
            vllm("HF://a/b", &json!({ "serverless": { "minReplicas": 2, "maxReplicas": 2 } })),
        ),
    ]
}

fn vllm(source: &str, more: &Value) -> Value {
    let mut spec = json!({ "backend": "vllm", "source": source });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    spec
}

fn on_nodes_with(nodes: &str, vendor: &str) -> Value {
    let selector = json!({ "node.flexstack.io/gpu-vendor": nodes });
    vllm("HF://a/b", &json!({ "gpu": { "vendor": vendor }, "nodeSelector": selector }))
}

/// The messages of every rule in the definition.
fn messages() -> BTreeSet<String> {
    let mut messages = BTreeSet::new();
    collect(&serde_json::to_value(Model::crd()).unwrap(), &mut messages);
    messages
}

fn collect(value: &Value, messages: &mut BTreeSet<String>) {
    let rules = value.get("x-kubernetes-validations").and_then(Value::as_array);
    messages
        .extend(rules.into_iter().flatten().map(|rule| rule["message"].as_str().unwrap().into()));
    match value {
        Value::Object(fields) => fields.values().for_each(|inner| collect(inner, messages)),
        Value::Array(items) => items.iter().for_each(|inner| collect(inner, messages)),
        _ => {}
    }
}

/// What the server finds wrong with a spec.
async fn complaints(models: &Models, spec: &Value) -> Vec<String> {
    let object = serde_json::from_value(model("judged", spec)).unwrap();
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    match models.api().create(&dry_run, &object).await {
        Ok(_) => Vec::new(),
        Err(kube::Error::Api(status)) => {
            assert_eq!(status.code, 422, "{spec}: {status:?}");
            let causes = status.details.map(|details| details.causes).unwrap_or_default();
            causes.into_iter().map(|cause| cause.message).collect()
        }
        Err(error) => panic!("{spec}: {error}"),
    }
}

#[tokio::test]
async fn every_rule_refuses_what_breaks_it_and_nothing_near_it() {
    let models = Models::new().await;
    let mut unused = messages();
    assert!(!unused.is_empty(), "the definition has no rules");
    for (broken, kept) in broken_and_kept() {
        let found = complaints(&models, &broken).await;
        let [found] = found.as_slice() else { panic!("{broken}: not one complaint: {found:?}") };
        let rule = unused.iter().find(|message| found.contains(message.as_str())).cloned();
        let rule = rule.unwrap_or_else(|| panic!("{broken}: no rule, or one seen before: {found}"));
        unused.remove(&rule);
        assert_eq!(complaints(&models, &kept).await, Vec::<String>::new(), "{kept}");
    }
    assert!(unused.is_empty(), "nothing here breaks these rules: {unused:?}");
}
