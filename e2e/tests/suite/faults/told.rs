//! What keeps a model from coming up is told to whoever waits for it, and is over when it is mended: with the real
//! controller and the real gateway.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, ResourceQuota};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::controller::{Desk, FAILING_IMAGE, simulated};
use crate::gateway::{Gateway, code, start};
use crate::shared::eventually;

/// A namespace with a controller and a gateway at work.
struct Scene {
    desk: Desk,
    gateway: Gateway,
}

impl Scene {
    async fn new() -> Self {
        let desk = Desk::new().await;
        let kubeconfig = desk.world().gateways_kubeconfig().await;
        let gateway = start(&desk.models, "one", kubeconfig, &[]).await;
        Self { desk, gateway }
    }

    /// As `spec`, and waited for for longer than a slow machine needs.
    async fn apply(&self, spec: &Value) {
        let mut spec = spec.clone();
        spec["serverless"] = json!({ "coldStartTimeout": "4m" });
        self.desk.apply("m", &spec).await;
        self.gateway.knows("m").await;
    }

    /// Who asks for the model is told that it cannot come up, for this reason and with these words.
    async fn is_told(&self, reason: &str, words: &str) {
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

    /// Somebody who goes on asking is served.
    async fn is_served_again(&self) {
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
    let world = scene.desk.world();
    let quotas: Api<ResourceQuota> = Api::namespaced(world.client.clone(), &world.namespace);
    let none = json!({ "metadata": { "name": "none" }, "spec": { "hard": { "pods": "0" } } });
    quotas.create(&PostParams::default(), &serde_json::from_value(none).unwrap()).await.unwrap();
    eventually("the quota is in force", async || {
        quotas.get("none").await.unwrap().status.and_then(|status| status.hard)
    })
    .await;
    scene.apply(&simulated(&json!({}))).await;
    scene.is_told("QuotaExceeded", "exceeded quota").await;
    quotas.delete("none", &DeleteParams::default()).await.unwrap();
    scene.is_served_again().await;
}

/// A claim with a folder `m` that the model's weights are in.
async fn claim_with_weights(desk: &Desk, name: &str) {
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
