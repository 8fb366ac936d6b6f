//! The rules over several fields: what an API server would say, against what Rust says.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use flexinfer_crds::ModelSpec;
use flexinfer_crds::model::broken_rules;
use kube_cel::CompiledSchema;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::definition::schema;

/// The messages of the CEL rules that `spec` breaks, as an API server finds them.
fn refused_by_cluster(spec: &Value) -> BTreeSet<String> {
    static RULES: LazyLock<CompiledSchema> =
        LazyLock::new(|| kube_cel::compile_schema(&schema()["properties"]["spec"]));
    match kube_cel::validate_compiled(&RULES, spec, None) {
        Ok(()) => BTreeSet::new(),
        Err(errors) => errors.into_vec().into_iter().map(|error| error.message).collect(),
    }
}

fn refused_by_rust(spec: &Value) -> BTreeSet<String> {
    let spec: ModelSpec = serde_json::from_value(spec.clone()).unwrap();
    broken_rules(&spec).iter().map(|rule| rule.message.to_owned()).collect()
}

/// A spec with `source` and, below it, the fields of `more`.
fn spec(source: &str, more: Value) -> Value {
    let mut spec = json!({ "backend": "vllm", "source": source });
    let Value::Object(more) = more else { panic!("not an object: {more}") };
    spec.as_object_mut().unwrap().extend(more);
    spec
}

#[test]
fn every_rule_is_broken_by_what_it_is_about() {
    for (broken, spec) in [
        ("source is missing", json!({ "backend": "vllm" })),
        ("source is missing", spec("", json!({}))),
        ("cache.strategy", spec("pvc://claim/a", json!({ "cache": { "strategy": "Memory" } }))),
        (
            "resources.limits",
            spec("HF://a/b", json!({ "resources": { "limits": { "nvidia.com/gpu": 1 } } })),
        ),
        (
            "resources.requests",
            spec("HF://a/b", json!({ "resources": { "requests": { "amd.com/gpu": "1" } } })),
        ),
        (
            "gpu.vendor and nodeSelector",
            spec(
                "HF://a/b",
                json!({
                    "gpu": { "vendor": "amd" },
                    "nodeSelector": { "node.flexstack.io/gpu-vendor": "nvidia" },
                }),
            ),
        ),
        ("gpu.shared", spec("HF://a/b", json!({ "gpu": { "vendor": "cpu", "shared": "one" } }))),
        ("gpu.count", spec("HF://a/b", json!({ "gpu": { "vendor": "cpu", "count": 1 } }))),
        (
            "gpu.vramEstimateMB",
            spec("HF://a/b", json!({ "gpu": { "vendor": "cpu", "vramEstimateMB": 1 } })),
        ),
        (
            "serverless.maxReplicas",
            spec("HF://a/b", json!({ "serverless": { "minReplicas": 3, "maxReplicas": 2 } })),
        ),
    ] {
        let messages = refused_by_cluster(&spec);
        assert_eq!(messages.len(), 1, "{spec}: {messages:?}");
        assert!(messages.iter().all(|message| message.starts_with(broken)), "{messages:?}");
        assert_eq!(refused_by_rust(&spec), messages, "{spec}");
    }
}

#[test]
fn what_is_allowed_breaks_no_rule() {
    for spec in [
        json!({ "backend": "external" }),
        json!({ "backend": "simulator" }),
        json!({ "backend": "command" }),
        spec("pvc://claim/a", json!({})),
        spec("pvc://claim/a", json!({ "cache": { "strategy": "Local" } })),
        spec("HF://a/b", json!({ "cache": { "strategy": "Memory" } })),
        spec("HF://a/b", json!({ "resources": { "limits": { "memory": "8Gi" } } })),
        spec("HF://a/b", json!({ "gpu": { "vendor": "cpu", "shared": "" } })),
        spec("HF://a/b", json!({ "serverless": { "minReplicas": 2, "maxReplicas": 2 } })),
    ] {
        assert_eq!(refused_by_cluster(&spec), BTreeSet::new(), "{spec}");
        assert_eq!(refused_by_rust(&spec), BTreeSet::new(), "{spec}");
    }
}

/// No typographic quote or dash may slip into an expression: it would not compile on a cluster.
#[test]
fn expressions_are_plain_ascii_and_compile() {
    let crd = schema().to_string();
    let expressions = crd.matches("\"rule\":").count();
    assert_eq!(expressions, 9);
    let compiled = kube_cel::compile_schema(&schema()["properties"]["spec"]);
    assert!(compiled.compilation_errors().is_empty(), "{:?}", compiled.compilation_errors());
    assert!(schema()["properties"]["spec"].to_string().is_ascii());
}

fn any_spec() -> impl Strategy<Value = Value> {
    let texts = |texts: &'static [&'static str]| prop::option::of(prop::sample::select(texts));
    let gpu = (
        texts(&["auto", "nvidia", "amd", "cpu"]),
        texts(&["", "one"]),
        prop::option::of(1..=8),
        prop::option::of(0..9000),
    )
        .prop_map(|(vendor, shared, count, vram)| {
            json!({ "vendor": vendor, "shared": shared, "count": count, "vramEstimateMB": vram })
        });
    let amounts = prop::collection::btree_map(
        prop::sample::select(&["memory", "nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915"]),
        1..9,
        0..3,
    );
    let resources = (prop::option::of(amounts.clone()), prop::option::of(amounts))
        .prop_map(|(limits, requests)| json!({ "limits": limits, "requests": requests }));
    let serverless = (prop::option::of(0..=10), prop::option::of(1..=10))
        .prop_map(|(min, max)| json!({ "minReplicas": min, "maxReplicas": max }));
    (
        prop::sample::select(&["vllm", "external", "simulator", "command"]),
        texts(&["", "HF://a/b", "pvc://claim/a"]),
        texts(&["Memory", "SharedPVC", "Local", "None"]),
        prop::option::of(gpu),
        prop::option::of(resources),
        prop::option::of(serverless),
        texts(&["nvidia", "amd", "cpu", "auto"]),
    )
        .prop_map(|(backend, source, strategy, gpu, resources, serverless, nodes)| {
            without_nulls(json!({
                "backend": backend,
                "source": source,
                "cache": { "strategy": strategy },
                "gpu": gpu,
                "resources": resources,
                "serverless": serverless,
                "nodeSelector": { "node.flexstack.io/gpu-vendor": nodes },
            }))
        })
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name, without_nulls(value)))
            .collect(),
        other => other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn local_mode_and_cluster_refuse_the_same_specs_with_the_same_words(spec in any_spec()) {
        prop_assert_eq!(refused_by_rust(&spec), refused_by_cluster(&spec));
    }
}
