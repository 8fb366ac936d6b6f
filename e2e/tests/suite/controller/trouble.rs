//! What keeps a model from starting, told so that a person can act on it.

use flexinfer_crds::ModelStatus;
use flexinfer_crds::model::Phase;
use k8s_openapi::api::core::v1::ResourceQuota;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use super::{Desk, simulated};

fn reason(status: &ModelStatus, kind: &str) -> Option<String> {
    let condition = status.conditions.iter().find(|condition| condition.type_ == kind)?;
    (condition.status == "False").then(|| condition.reason.clone())
}

/// A pinned model, and the reason why it is not ready, once that is `wanted`.
async fn not_ready_for(desk: &Desk, more: &Value, wanted: &str) -> ModelStatus {
    let mut spec = simulated(&json!({ "serverless": { "minReplicas": 1 } }));
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    desk.apply("m", &spec).await;
    desk.until(&format!("not ready for {wanted}"), "m", |status| {
        reason(status, "Ready").as_deref() == Some(wanted)
    })
    .await
}

#[tokio::test]
async fn an_image_that_is_not_there_has_failed_and_recovers_when_it_is() {
    let desk = Desk::new().await;
    let status = not_ready_for(&desk, &json!({ "image": "not/there:1" }), "ImagePullFailed").await;
    assert_eq!(status.phase, Some(Phase::Failed));
    assert!(status.message.unwrap().contains("not/there:1"));
    assert!(desk.events("m").await.contains(&"Failed".to_owned()));
    desk.apply("m", &simulated(&json!({ "serverless": { "minReplicas": 1 } }))).await;
    desk.until_phase("m", Phase::Ready).await;
}

#[tokio::test]
async fn an_engine_that_dies_again_and_again_has_failed() {
    let desk = Desk::new().await;
    let dies = json!({ "config": { "args": ["--no-such-flag"] } });
    let status = not_ready_for(&desk, &dies, "CrashLoop").await;
    assert_eq!(status.phase, Some(Phase::Failed));
}

#[tokio::test]
async fn a_pod_that_fits_on_no_node_is_pending_and_says_why() {
    let desk = Desk::new().await;
    let large = json!({ "resources": { "requests": { "cpu": "999" } } });
    let status = not_ready_for(&desk, &large, "Unschedulable").await;
    assert_eq!(status.phase, Some(Phase::Pending));
    assert_eq!(reason(&status, "Schedulable").as_deref(), Some("Unschedulable"));
    assert!(status.message.unwrap().contains("cpu"));
}

#[tokio::test]
async fn a_quota_that_is_used_up_is_named_and_waits_for_nobody() {
    let desk = Desk::new().await;
    let quotas: Api<ResourceQuota> =
        Api::namespaced(desk.world().client.clone(), &desk.world().namespace);
    let none = json!({ "metadata": { "name": "none" }, "spec": { "hard": { "pods": "0" } } });
    quotas.create(&PostParams::default(), &serde_json::from_value(none).unwrap()).await.unwrap();
    let status = not_ready_for(&desk, &json!({}), "QuotaExceeded").await;
    assert_eq!(status.phase, Some(Phase::Failed));
    quotas.delete("none", &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn a_spec_that_cannot_work_makes_nothing_and_says_what_to_write() {
    let desk = Desk::new().await;
    let typo = json!({ "backend": "simulatr", "source": "HF://org/model" });
    let status = not_ready_for(&desk, &typo, "BackendUnsupported").await;
    assert_eq!(status.phase, Some(Phase::Failed));
    assert!(status.message.unwrap().contains("simulator"), "no hint");
    assert_eq!(desk.replicas("m").await, None);
}

#[tokio::test]
async fn two_models_that_claim_one_alias_are_both_told() {
    let desk = Desk::new().await;
    let claims = simulated(&json!({ "litellm": { "aliases": ["chat"] } }));
    desk.apply("one", &claims).await;
    desk.apply("two", &claims).await;
    for model in ["one", "two"] {
        desk.until("in conflict", model, |status| {
            reason(status, "NameUnique").as_deref() == Some("AliasConflict")
        })
        .await;
    }
    desk.apply("two", &simulated(&json!({}))).await;
    desk.until("without a conflict", "one", |status| reason(status, "NameUnique").is_none()).await;
}
