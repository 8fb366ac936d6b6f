//! What keeps a model from coming up is told to whoever waits for it, and is over when it is mended: with the real
//! controller and the real gateway.

use std::path::PathBuf;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, ResourceQuota};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::controller::{Desk, FAILING_IMAGE, simulated};
use crate::gateway::{Gateway, code, start};
use crate::shared::eventually;

/// A namespace with a controller and a gateway at work.
pub(super) struct Scene {
    pub(super) desk: Desk,
    pub(super) gateway: Gateway,
}

impl Scene {
    pub(super) async fn new() -> Self {
        let desk = Desk::new().await;
        let kubeconfig = desk.world().gateways_kubeconfig().await;
        let gateway = start(&desk.models, "one", kubeconfig, &[]).await;
        Self { desk, gateway }
    }

    /// As `spec`, and waited for for longer than a slow machine needs.
    pub(super) async fn apply(&self, spec: &Value) {
        let mut spec = spec.clone();
        spec["serverless"] = json!({ "coldStartTimeout": "4m" });
        self.desk.apply("m", &spec).await;
        self.gateway.knows("m").await;
    }

    /// Who asks for the model is told that it cannot come up, for this reason and with these words.
    pub(super) async fn is_told(&self, reason: &str, words: &str) {
        let answer = self.gateway.ask("m").await;
        let told = (answer.status(), code(&answer));
        let text = answer.text();
        assert_eq!(told, (503, "activation_failed".to_owned()), "{text}\n{}", self.desk.log());
        assert!(text.contains(words), "{text} lacks {words}");
        let named = |status: &flexinfer_crds::ModelStatus| {
            status.conditions.iter().any(|condition| condition.reason == reason)
        };
        self.desk.until(&format!("known to fail for {reason}"), "m", named).await;
        assert!(!self.desk.events("m").await.is_empty(), "no event tells it");
    }

    fn quotas(&self) -> Api<ResourceQuota> {
        let world = self.desk.world();
        Api::namespaced(world.client.clone(), &world.namespace)
    }

    /// From now on there may be no more than this in the namespace.
    pub(super) async fn quota(&self, name: &str, hard: &Value) {
        let quota = json!({ "metadata": { "name": name }, "spec": { "hard": hard } });
        let quota = serde_json::from_value(quota).unwrap();
        self.quotas().create(&PostParams::default(), &quota).await.unwrap();
        eventually("the quota is in force", async || {
            let status = self.quotas().get(name).await.unwrap().status?;
            status.hard.filter(|_| status.used.is_some())
        })
        .await;
    }

    pub(super) async fn no_quota(&self, name: &str) {
        self.quotas().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Somebody who goes on asking is served.
    pub(super) async fn is_served_again(&self) {
        eventually("an answer after it was mended", async || {
            (self.gateway.ask("m").await.status() == 200).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_11_an_image_that_is_missing_is_told_and_served_once_it_is_another() {
    let scene = Scene::new().await;
    scene.apply(&simulated(&json!({ "image": "not/there:1" }))).await;
    scene.is_told("ImagePullFailed", "not/there:1").await;
    scene.apply(&simulated(&json!({}))).await;
    scene.is_served_again().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_11_an_engine_that_crashes_again_and_again_is_told_and_served_once_it_does_not() {
    let scene = Scene::new().await;
    let mut dies = simulated(&json!({}));
    dies["config"]["args"] = json!(["--die-while-loading=50%"]);
    scene.apply(&dies).await;
    scene.is_told("CrashLoop", "CUDA out of memory").await;
    scene.apply(&simulated(&json!({}))).await;
    scene.is_served_again().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_that_is_used_up_is_told_and_served_once_there_is_room() {
    let scene = Scene::new().await;
    scene.quota("none", &json!({ "pods": "0" })).await;
    scene.apply(&simulated(&json!({}))).await;
    scene.is_told("QuotaExceeded", "exceeded quota").await;
    scene.no_quota("none").await;
    scene.is_served_again().await;
}

/// A claim with a folder `m` that the model's weights are in; and where it lies.
pub(super) async fn claim_with_weights(desk: &Desk, name: &str) -> PathBuf {
    let world = desk.world();
    let claims: Api<PersistentVolumeClaim> =
        Api::namespaced(world.client.clone(), &world.namespace);
    let claim = json!({
        "metadata": { "name": name },
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    let claim = serde_json::from_value(claim).unwrap();
    let claim = claims.create(&PostParams::default(), &claim).await.unwrap();
    let folder = world.cluster.folder().join("volumes");
    let folder = folder.join(format!("folder-{}", claim.uid().unwrap()));
    eventually("the claim's folder", async || folder.exists().then_some(())).await;
    std::fs::create_dir(folder.join("m")).unwrap();
    std::fs::write(folder.join("m/weights.bin"), "weights").unwrap();
    folder
}

fn on_claim(loader: &Value) -> Value {
    simulated(&json!({ "source": "pvc://weights/m", "cache": { "flashLoader": loader } }))
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_12_a_crashing_init_container_is_named_and_told_and_served_once_it_works() {
    let scene = Scene::new().await;
    claim_with_weights(&scene.desk, "weights").await;
    scene.apply(&on_claim(&json!({ "enabled": true, "image": FAILING_IMAGE }))).await;
    scene.is_told("InitContainerFailed", "flash-loader").await;
    scene.apply(&on_claim(&json!({ "enabled": true }))).await;
    scene.is_served_again().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_does_not_exist_is_told_and_served_once_it_does() {
    let scene = Scene::new().await;
    scene.apply(&on_claim(&json!({ "enabled": false }))).await;
    scene.is_told("PVCProvisioning", "weights").await;
    claim_with_weights(&scene.desk, "weights").await;
    scene.is_served_again().await;
}
