//! A Model with every field set, read and written back.

use flexinfer_crds::Model;
use serde_json::Value;

use crate::definition::schema;

fn whole() -> Value {
    serde_saphyr::from_str(include_str!("whole_model.yaml")).unwrap()
}

#[test]
fn every_field_survives_being_read_and_written() {
    let model: Model = serde_json::from_value(whole()).unwrap();
    assert_eq!(serde_json::to_value(&model).unwrap(), whole());
}

#[test]
fn the_example_above_sets_every_field_of_the_schema() {
    assert_whole(&schema()["properties"]["spec"], &whole()["spec"], "spec");
    assert_whole(&schema()["properties"]["status"], &whole()["status"], "status");
}

fn assert_whole(schema: &Value, value: &Value, path: &str) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        assert!(!value[name].is_null(), "{path} is not set in whole_model.yaml");
        let (schema, value) = if property["items"].is_object() {
            (&property["items"], &value[name][0])
        } else {
            (property, &value[name])
        };
        assert_whole(schema, value, &path);
    }
}

#[test]
fn an_absent_field_stays_absent() {
    let spec = serde_json::json!({ "backend": "simulator", "gpu": {}, "serverless": {} });
    let read: flexinfer_crds::ModelSpec = serde_json::from_value(spec.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), spec);
}

#[test]
fn a_field_from_a_newer_version_does_not_make_an_object_unreadable() {
    let spec = serde_json::json!({ "backend": "simulator", "gpu": { "fromTheFuture": 1 } });
    assert!(serde_json::from_value::<flexinfer_crds::ModelSpec>(spec).is_ok());
}
