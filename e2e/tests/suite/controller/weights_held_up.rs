//! What fills a claim and cannot: it is told, nothing else stops for it, and it goes on once that is mended.

use flexinfer_crds::ModelStatus;
use flexinfer_crds::model::Phase;
use flexinfer_e2e::storage_class;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::simulated;
use super::weights::{Shelf, cached};
use crate::crds::model;
use crate::shared::eventually;

/// A pinned model that is fetched on a node with this label, by the token in this Secret.
async fn apply(shelf: &Shelf, name: &str, source: &str, test: &str, secret: Option<&str>) {
    let mut spec = simulated(&json!({ "source": source, "serverless": { "minReplicas": 1 } }));
    spec["nodeSelector"] = json!({ "test": test });
    let mut object = model(name, &spec);
    if let Some(secret) = secret {
        object["metadata"]["annotations"] = json!({ "flexinfer.ai/hf-token-secret": secret });
    }
    shelf.desk.models.apply(&object).await;
}

async fn make_secret(shelf: &Shelf, name: &str) {
    let secret =
        json!({ "metadata": { "name": name }, "stringData": { "HF_TOKEN": "hf_of_theirs" } });
    let secret: Secret = serde_json::from_value(secret).unwrap();
    shelf.api::<Secret>().create(&PostParams::default(), &secret).await.unwrap();
}

/// The status, once its weights are not there for this reason.
async fn held_up(shelf: &Shelf, name: &str, reason: &str) -> ModelStatus {
    let is = |status: &ModelStatus| {
        let cached = status.conditions.iter().find(|found| found.type_ == "Cached");
        cached.is_some_and(|found| found.status == "False" && found.reason == reason)
    };
    shelf.desk.until(&format!("held up by {reason}"), name, is).await
}

fn says(status: &ModelStatus, words: &str) {
    let message = status.message.as_deref().unwrap_or_default();
    assert!(message.contains(words), "{message:?} lacks {words}");
}

#[tokio::test]
async fn a_job_whose_pod_cannot_begin_is_told_and_made_anew_once_that_is_mended() {
    let mut shelf = Shelf::without_controller().await;
    let (hub, here) = (shelf.hub(), shelf.desk.world().namespace.clone());
    shelf.desk.start_controller_of("test/no-such:1", &["--hf-endpoint", &hub]);
    apply(&shelf, "image", "HF://org/name", &here, None).await;
    let failed = held_up(&shelf, "image", "ImagePullFailed").await;
    assert_eq!(failed.phase, Some(Phase::Failed), "waiting does not help");
    says(&failed, "test/no-such:1");
    shelf.desk.kill_controller().await;
    let shelf = shelf.with_controller();
    shelf.ready("image").await;

    apply(&shelf, "secret", "HF://org/name", &here, Some("mine")).await;
    apply(&shelf, "nowhere", "HF://org/name", "elsewhere", None).await;
    let waits = held_up(&shelf, "secret", "Provisioning").await;
    assert_eq!(waits.phase, Some(Phase::Pending), "it may still come");
    says(&waits, "mine");
    held_up(&shelf, "nowhere", "Unschedulable").await;
    make_secret(&shelf, "mine").await;
    shelf.ready("secret").await;
    apply(&shelf, "nowhere", "HF://org/name", &here, None).await;
    shelf.ready("nowhere").await;
}

#[tokio::test]
async fn k8s_20_a_gated_repository_is_tried_again_at_once_when_another_secret_is_named() {
    let shelf = Shelf::without_controller().await.with_controller();
    let here = shelf.desk.world().namespace.clone();
    make_secret(&shelf, "theirs").await;
    apply(&shelf, "m", "HF://org/gated", &here, None).await;
    let failed = shelf.desk.until_phase("m", Phase::Failed).await;
    assert_eq!(cached(&failed).1, "PrefetchFailed");
    let asked = shelf.hub.asked_for("org/gated");
    apply(&shelf, "m", "HF://org/gated", &here, Some("theirs")).await;
    // The hub has no TLS and so is sent no token: what shows is that it is asked anew, by a pod that has one.
    eventually("the hub is asked again", async || {
        (shelf.hub.asked_for("org/gated") > asked).then_some(())
    })
    .await;
    let pods = serde_json::to_string(&shelf.pods_of("m-cache-prefetch").await).unwrap();
    assert!(pods.contains("theirs"), "{pods}");
}

#[tokio::test]
async fn k8s_17_a_claim_that_cannot_grow_keeps_its_size_and_the_model_goes_on() {
    let shelf = Shelf::without_controller().await.with_controller();
    // Others of this cluster have the usual one.
    let classes: Api<StorageClass> = Api::all(shelf.desk.world().client.clone());
    let class = storage_class(&shelf.desk.world().namespace, false);
    let class = classes.create(&PostParams::default(), &class).await.unwrap().name_any();
    let sized = |size: &str, edit: &str| {
        let config = json!({ "args": ["--load-time=1s"], "env": { "EDIT": edit } });
        json!({ "cache": { "size": size, "storageClass": class }, "config": config })
    };
    shelf.apply("m", "HF://org/name", &sized("1Gi", "first")).await;
    shelf.ready("m").await;
    shelf.apply("m", "HF://org/name", &sized("2Gi", "second")).await;
    eventually("the edit has reached the Deployment", async || {
        let deployment = shelf.desk.deployments().get("m").await.unwrap();
        let written = serde_json::to_string(&deployment.spec.template).unwrap();
        written.contains("second").then_some(())
    })
    .await;
    let told = |status: &ModelStatus| {
        let cached = status.conditions.iter().find(|found| found.type_ == "Cached");
        cached.is_some_and(|found| found.message.contains("cannot grow to 2Gi"))
            && status.phase == Some(Phase::Ready)
    };
    shelf.desk.until("told", "m", told).await;
    assert_eq!(size_of(&shelf, "m-cache").await, json!("1Gi"));
    let log = shelf.desk.log();
    assert!(!log.contains("forbidden"), "it was asked for what cannot be: {log}");

    // The class may change its mind.
    let grows = Patch::Merge(json!({ "allowVolumeExpansion": true }));
    classes.patch(&class, &PatchParams::default(), &grows).await.unwrap();
    eventually("the claim grows", async || {
        (size_of(&shelf, "m-cache").await == json!("2Gi")).then_some(())
    })
    .await;
    shelf.ready("m").await;
    classes.delete(&class, &DeleteParams::default()).await.unwrap();
}

/// The size that a claim asks for.
async fn size_of(shelf: &Shelf, claim: &str) -> Value {
    let claim = shelf.api::<PersistentVolumeClaim>().get(claim).await.unwrap();
    json!(claim.spec.unwrap().resources.unwrap().requests.unwrap()["storage"])
}
