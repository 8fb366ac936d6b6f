//! What the API server makes of fields: it keeps what is known, adds nothing, and says what is unknown.

use serde_json::{Value, json};

use super::{Models, checkout, model};

/// A Model with every field of the definition, which the definition's own tests keep complete.
fn whole() -> Value {
    let path = checkout().join("crds/tests/suite/whole_model.yaml");
    serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[tokio::test]
async fn every_field_is_stored_as_it_was_written() {
    let models = Models::new().await;
    models.apply(&whole()).await;
    assert_eq!(models.stored_spec("whole").await, whole()["spec"]);
}

#[tokio::test]
async fn absent_fields_stay_absent() {
    let models = Models::new().await;
    for spec in [
        json!({ "backend": "simulator" }),
        json!({ "backend": "simulator", "gpu": {}, "serverless": {}, "cache": {} }),
    ] {
        models.apply(&model("sparse", &spec)).await;
        assert_eq!(models.stored_spec("sparse").await, spec);
    }
}

#[tokio::test]
async fn config_keeps_what_no_schema_knows() {
    let models = Models::new().await;
    let config = json!({ "args": ["--a", 1], "env": { "A": { "deep": [true] } } });
    let spec = json!({ "backend": "command", "config": config });
    models.apply(&model("free", &spec)).await;
    assert_eq!(models.stored_spec("free").await, spec);
}

#[tokio::test]
async fn kubectl_refuses_an_unknown_field_by_its_path() {
    let models = Models::new().await;
    let misspelt = model("misspelt", &json!({ "backend": "simulator", "gpu": { "shard": "a" } }));
    let printed = models.kubectl(&["apply", "--filename", "-"], &misspelt.to_string()).await;
    assert!(!printed.success, "it was taken: {}", printed.stdout);
    assert!(printed.stderr.contains("unknown field \"spec.gpu.shard\""), "{}", printed.stderr);
}

#[tokio::test]
async fn an_unknown_field_that_is_let_through_is_warned_of_and_not_stored() {
    let models = Models::new().await;
    let spec = json!({ "backend": "simulator", "colour": "blue" });
    let apply = ["apply", "--validate=warn", "--filename", "-"];
    let printed = models.succeed(&apply, &model("coloured", &spec).to_string()).await;
    assert!(printed.stderr.contains("unknown field \"spec.colour\""), "{}", printed.stderr);
    assert_eq!(models.stored_spec("coloured").await, json!({ "backend": "simulator" }));
}

#[tokio::test]
async fn status_is_written_by_its_own_door_alone() {
    let models = Models::new().await;
    let mut written = whole();
    written["metadata"]["name"] = "with-status".into();
    models.apply(&written).await;
    let stored = models.api().get("with-status").await.unwrap();
    assert_eq!(stored.data.get("status"), None, "a user's apply set the status");
}
