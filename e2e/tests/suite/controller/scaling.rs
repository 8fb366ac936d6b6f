//! How many replicas a model has: by its load, or as another autoscaler says.

use flexinfer_crds::model::Phase;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{Desk, simulated};
use crate::crds::model;
use crate::shared::eventually;

async fn until_replicas(desk: &Desk, wanted: i32) {
    eventually(&format!("{wanted} replicas"), async || {
        (desk.replicas("m").await == Some(wanted)).then_some(())
    })
    .await;
}

async fn until_ready_pods(desk: &Desk, wanted: i32) {
    eventually(&format!("{wanted} ready pods"), async || {
        let deployment = desk.deployments().get("m").await.unwrap();
        let ready = deployment.status.and_then(|status| status.ready_replicas);
        (ready == Some(wanted)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn more_load_brings_more_replicas_up_to_the_limit() {
    let desk = Desk::new().await;
    let mut spec = simulated(&json!({ "serverless": { "maxReplicas": 3 } }));
    spec["config"]["maxConcurrency"] = json!(2);
    desk.apply("m", &spec).await;
    desk.until_phase("m", Phase::Idle).await;
    desk.traffic("m", 0, 1).await;
    desk.until_phase("m", Phase::Ready).await;
    assert_eq!(desk.replicas("m").await, Some(1));
    desk.traffic("m", 2, 1).await;
    until_ready_pods(&desk, 2).await;
    desk.traffic("m", 4, 20).await;
    until_ready_pods(&desk, 3).await;
    assert_eq!(desk.replicas("m").await, Some(3));
    desk.traffic("m", 1, 0).await;
    let status = desk.until_phase("m", Phase::Ready).await;
    assert_eq!(status.phase, Some(Phase::Ready));
    assert_eq!(desk.replicas("m").await, Some(3), "fewer come only after a while");
}

#[tokio::test]
async fn k8s_01_what_another_autoscaler_sets_stays_through_an_edit_and_a_new_controller() {
    let mut desk = Desk::new().await;
    let scaled = |idle: &str, more: &serde_json::Value| {
        let mut spec =
            simulated(&json!({ "serverless": { "idleTimeout": idle, "maxReplicas": 5 } }));
        spec["nodeSelector"] = json!({ "test": desk.world().namespace });
        spec["config"]["env"] = more.clone();
        let mut object = model("m", &spec);
        object["metadata"]["annotations"] = json!({ "flexinfer.ai/autoscaler": "external" });
        object
    };
    let edit = json!({ "EDITED": "yes" });
    let (first, edited) = (scaled("300s", &json!({})), scaled("300s", &edit));
    let brief = scaled("3s", &edit);
    desk.models.apply(&first).await;
    desk.until_phase("m", Phase::Idle).await;
    desk.traffic("m", 1, 1).await;
    desk.until_phase("m", Phase::Ready).await;

    let scale = Patch::Merge(json!({ "spec": { "replicas": 3 } }));
    let theirs = PatchParams { field_manager: Some("autoscaler".into()), ..PatchParams::default() };
    desk.deployments().patch_scale("m", &theirs, &scale).await.unwrap();
    until_ready_pods(&desk, 3).await;
    desk.models.apply(&edited).await;
    eventually("the edit has reached the Deployment", async || {
        let deployment = desk.deployments().get("m").await.unwrap();
        let written = serde_json::to_string(&deployment.spec.template).unwrap();
        written.contains("EDITED").then_some(())
    })
    .await;
    assert_eq!(desk.replicas("m").await, Some(3));
    desk.kill_controller().await;
    desk.start_controller(&[]);
    until_ready_pods(&desk, 3).await;
    let deployment = desk.deployments().get("m").await.unwrap();
    let owner = deployment.managed_fields().iter().find(|entry| {
        let fields = entry.fields_v1.as_ref();
        fields.is_some_and(|fields| fields.0.pointer("/f:spec/f:replicas").is_some())
    });
    assert_eq!(owner.and_then(|entry| entry.manager.as_deref()), Some("autoscaler"));

    desk.traffic("m", 0, 0).await;
    desk.models.apply(&brief).await;
    until_replicas(&desk, 0).await;
}
