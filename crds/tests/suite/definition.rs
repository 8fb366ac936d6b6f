//! The definition that is installed on a cluster.

use flexinfer_crds::Model;
use flexinfer_crds::model::TEXT_FORMS;
use kube::CustomResourceExt;
use serde_json::Value;

const YAML: &str = include_str!("../../yaml/models.inference.flexinfer.ai.yaml");

pub(crate) fn schema() -> &'static Value {
    let schema = flexinfer_crds::model::schema();
    assert!(schema["properties"]["spec"].is_object(), "{schema}");
    schema
}

/// Calls `look` with each schema below `schema` and its path.
fn visit(schema: &Value, path: &str, look: &mut dyn FnMut(&str, &Value)) {
    look(path, schema);
    if let Some(properties) = schema["properties"].as_object() {
        for (name, property) in properties {
            visit(property, &format!("{path}.{name}"), look);
        }
    }
    for inner in ["items", "additionalProperties"] {
        if schema[inner].is_object() {
            visit(&schema[inner], path, look);
        }
    }
}

#[test]
fn generated_yaml_is_fresh() {
    let written: Value = serde_saphyr::from_str(YAML).unwrap();
    let now = serde_json::to_value(Model::crd()).unwrap();
    assert_eq!(written, now, "run `cargo xtask generate` and commit the result");
}

#[test]
fn the_kind_is_named_as_users_know_it() {
    let crd = serde_json::to_value(Model::crd()).unwrap();
    assert_eq!(crd["metadata"]["name"], "models.inference.flexinfer.ai");
    assert_eq!(crd["spec"]["group"], flexinfer_crds::GROUP);
    assert_eq!(crd["spec"]["scope"], "Namespaced");
    assert_eq!(crd["spec"]["names"]["shortNames"], serde_json::json!(["mdl"]));
    assert_eq!(crd["spec"]["versions"][0]["name"], "v1alpha2");
    assert_eq!(crd["spec"]["versions"][0]["subresources"], serde_json::json!({ "status": {} }));
}

#[test]
fn kubectl_get_shows_the_columns_of_the_original() {
    let crd = Model::crd();
    let columns: Vec<_> = crd.spec.versions[0]
        .additional_printer_columns
        .iter()
        .flatten()
        .map(|column| format!("{} {} {}", column.name, column.json_path, column.type_))
        .collect();
    assert_eq!(
        columns,
        [
            "Backend .spec.backend string",
            "Phase .status.phase string",
            "Shared .spec.gpu.shared string",
            "Priority .spec.gpu.priority integer",
            "TPS .status.metrics.tokensPerSecond string",
            "Age .metadata.creationTimestamp date",
        ]
    );
}

#[test]
fn no_field_has_a_default_in_the_schema() {
    visit(schema(), "", &mut |path, schema| {
        assert!(schema.get("default").is_none(), "{path} has a default");
    });
}

#[test]
fn every_field_is_described() {
    visit(schema(), "", &mut |path, schema| {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let described = property["description"].as_str().is_some_and(|text| !text.is_empty());
            assert!(described || path.is_empty(), "{path}.{name} has no description");
        }
    });
}

#[test]
fn the_description_of_a_field_is_its_own_and_not_that_of_its_type() {
    let vendor = &schema()["properties"]["spec"]["properties"]["gpu"]["properties"]["vendor"];
    assert!(vendor["description"].as_str().unwrap().contains("the default"), "{vendor}");
}

#[test]
fn the_schema_is_structural() {
    visit(schema(), "", &mut |path, schema| {
        let typed =
            schema["type"].is_string() || schema["x-kubernetes-int-or-string"] == Value::Bool(true);
        assert!(typed, "{path} has no type: {schema}");
        for forbidden in ["$ref", "anyOf", "oneOf", "allOf", "not", "uniqueItems", "definitions"] {
            assert!(schema.get(forbidden).is_none(), "{path} has {forbidden}");
        }
        if let Some(format) = schema["format"].as_str() {
            assert!(["int32", "int64", "date-time"].contains(&format), "{path} is a {format}");
        }
    });
}

#[test]
fn local_mode_can_check_every_pattern() {
    visit(schema(), "", &mut |path, schema| {
        if let Some(pattern) = schema["pattern"].as_str() {
            let known = TEXT_FORMS.iter().any(|form| form.pattern == pattern);
            assert!(known, "{path}: {pattern} is not among TEXT_FORMS");
        }
    });
}

#[test]
fn traffic_and_conditions_are_lists_that_several_writers_share() {
    let status = &schema()["properties"]["status"]["properties"];
    for (list, key) in [("traffic", "gateway"), ("conditions", "type")] {
        assert_eq!(status[list]["x-kubernetes-list-type"], "map");
        assert_eq!(status[list]["x-kubernetes-list-map-keys"], serde_json::json!([key]));
    }
}

#[test]
fn config_is_kept_whatever_it_holds() {
    let config = &schema()["properties"]["spec"]["properties"]["config"];
    assert_eq!(config["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!(config["type"], "object");
}
