//! The definition of LoRA adapters that is installed on a cluster.

use flexinfer_crds::LoRAAdapter;
use flexinfer_crds::model::TEXT_FORMS;
use kube::CustomResourceExt;
use serde_json::{Value, json};

const YAML: &str = include_str!("../../yaml/loraadapters.inference.flexinfer.ai.yaml");

#[test]
fn generated_yaml_is_fresh() {
    let written: Value = serde_saphyr::from_str(YAML).unwrap();
    let now = serde_json::to_value(LoRAAdapter::crd()).unwrap();
    assert_eq!(written, now, "run `cargo xtask generate` and commit the result");
}

#[test]
fn the_kind_is_named_as_users_know_it() {
    let crd = serde_json::to_value(LoRAAdapter::crd()).unwrap();
    assert_eq!(crd["metadata"]["name"], "loraadapters.inference.flexinfer.ai");
    assert_eq!(crd["spec"]["scope"], "Namespaced");
    assert_eq!(crd["spec"]["names"]["shortNames"], json!(["lora"]));
    assert_eq!(crd["spec"]["versions"][0]["name"], "v1alpha2");
    assert_eq!(crd["spec"]["versions"][0]["subresources"], json!({ "status": {} }));
}

#[test]
fn an_adapter_is_read_and_written_back() {
    let object = json!({
        "apiVersion": "inference.flexinfer.ai/v1alpha2",
        "kind": "LoRAAdapter",
        "metadata": { "name": "sql" },
        "spec": {
            "modelRef": "qwen",
            "adapterName": "sql-expert",
            "source": { "type": "OCI", "uri": "registry/adapter:1" },
            "maxRank": 16,
            "preload": false,
        },
        "status": { "phase": "Loaded", "loadedReplicas": 1, "totalReplicas": 2 },
    });
    let adapter: LoRAAdapter = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(adapter).unwrap(), object);
}

#[test]
fn every_form_of_a_text_is_explained() {
    let schema = flexinfer_crds::lora_adapter::schema();
    let pattern = &schema["properties"]["spec"]["properties"]["adapterName"]["pattern"];
    let form = TEXT_FORMS.iter().find(|form| *pattern == form.pattern).unwrap();
    for name in ["sql", "org/sql:v1", "a", "A+b@c_d.e-f"] {
        assert_eq!((form.check)(name), Ok(()), "{name}");
    }
    for name in ["", "-sql", "two words", "\u{e9}", "a%2Fb", "a?b", &"x".repeat(254)] {
        assert!((form.check)(name).is_err(), "{name}");
    }
}
