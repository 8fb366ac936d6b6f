//! Weights on their claim before an engine starts: fetched, copied, looked at and made smaller by Jobs that run.

use std::path::{Path, PathBuf};

use flexinfer_crds::ModelStatus;
use flexinfer_crds::model::{JobPhase, LoadingSubstage, Phase};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

use super::hub::FakeHub;
use super::{Desk, simulated};
use crate::shared::{World, eventually};

/// A desk whose controller fetches from a hub of the test's.
pub(super) struct Shelf {
    pub(super) desk: Desk,
    pub(super) hub: FakeHub,
}

impl Shelf {
    pub(super) async fn new() -> Self {
        Self::without_controller().await.with_controller()
    }

    /// The same with several nodes, each of which has a GPU.
    pub(super) async fn on_nodes(count: usize) -> Self {
        let desk = Desk::on_nodes(World::new().await, count).await;
        Self { desk, hub: FakeHub::start().await }.with_controller()
    }

    pub(super) async fn without_controller() -> Self {
        Self::of(World::new().await).await
    }

    /// Without a controller, in a namespace of whichever cluster.
    pub(super) async fn of(world: World) -> Self {
        Self { desk: Desk::of(world).await, hub: FakeHub::start().await }
    }

    pub(super) fn with_controller(mut self) -> Self {
        let hub = self.hub.url();
        self.desk.start_controller(&["--hf-endpoint", &hub]);
        self
    }

    /// A pinned model with these weights.
    pub(super) async fn apply(&self, name: &str, source: &str, more: &Value) {
        let mut spec = simulated(&json!({ "source": source, "serverless": { "minReplicas": 1 } }));
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.desk.apply(name, &spec).await;
    }

    pub(super) async fn ready(&self, name: &str) -> ModelStatus {
        self.desk.until_phase(name, Phase::Ready).await
    }

    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.desk.world().client.clone(), &self.desk.world().namespace)
    }

    /// The address of the hub.
    pub(super) fn hub(&self) -> String {
        self.hub.url()
    }

    async fn job(&self, name: &str) -> Option<Job> {
        self.api::<Job>().get_opt(name).await.unwrap()
    }

    /// Whether a file is on a claim.
    pub(super) async fn holds(&self, claim: &str, path: &str) -> bool {
        self.on(claim, path).await.exists()
    }

    /// Where a file of a claim is on this machine.
    pub(super) async fn on(&self, claim: &str, path: &str) -> PathBuf {
        let claim: PersistentVolumeClaim = self.api().get(claim).await.unwrap();
        let volume = claim.spec.unwrap().volume_name.unwrap();
        let volumes: Api<PersistentVolume> = Api::all(self.desk.world().client.clone());
        let volume = volumes.get(&volume).await.unwrap().spec.unwrap();
        Path::new(&volume.host_path.unwrap().path).join(path)
    }

    pub(super) async fn pods_of(&self, job: &str) -> Vec<Pod> {
        let of_job = ListParams::default().labels(&format!("batch.kubernetes.io/job-name={job}"));
        self.api::<Pod>().list(&of_job).await.unwrap().items
    }
}

/// The condition `Cached`: its status and its reason.
pub(super) fn cached(status: &ModelStatus) -> (String, String) {
    let found = status.conditions.iter().find(|condition| condition.type_ == "Cached").unwrap();
    (found.status.clone(), found.reason.clone())
}

const FETCHED: &str = "huggingface/org/name/main/model.bin";

#[tokio::test]
async fn no_engine_starts_before_its_weights_are_on_their_claim() {
    let shelf = Shelf::new().await;
    shelf.apply("m", "HF://org/held", &json!({ "cache": { "size": "1Gi" } })).await;
    let fetching = shelf.desk.until("fetching", "m", |status| {
        status.loading_substage == Some(LoadingSubstage::Downloading)
    });
    let status = fetching.await;
    assert_eq!(status.phase, Some(Phase::Pending));
    assert_eq!(cached(&status), ("False".to_owned(), "PrefetchRunning".to_owned()));
    let cache = status.cache.unwrap();
    assert_eq!((cache.job_phase, cache.ready), (Some(JobPhase::Running), Some(false)));
    assert_eq!(shelf.desk.replicas("m").await, Some(0));
    eventually("the file is asked for", async || {
        shelf.hub.release();
        (shelf.hub.asked_for("org/held") > 1).then_some(())
    })
    .await;
    shelf.hub.release();
    let status = shelf.ready("m").await;
    assert_eq!(cached(&status), ("True".to_owned(), "PrefetchSucceeded".to_owned()));
    assert_eq!(status.cache.unwrap().job_phase, Some(JobPhase::Succeeded));
    assert!(shelf.holds("m-cache", "huggingface/org/held/main/model.bin").await);
}

#[tokio::test]
async fn k8s_20_a_gated_repository_is_tried_once_and_mended_by_another_source() {
    let shelf = Shelf::new().await;
    shelf.apply("m", "HF://org/gated", &json!({})).await;
    let failed = shelf.desk.until_phase("m", Phase::Failed).await;
    assert_eq!(cached(&failed), ("False".to_owned(), "PrefetchFailed".to_owned()));
    let message = failed.message.unwrap();
    assert!(message.contains("gated"), "{message}");
    assert_eq!(shelf.pods_of("m-cache-prefetch").await.len(), 1, "trying again is no use");
    shelf.apply("m", "HF://org/name", &json!({})).await;
    shelf.ready("m").await;
    assert!(shelf.holds("m-cache", FETCHED).await);
}

#[tokio::test]
async fn k8s_11_a_source_that_changes_while_it_is_fetched_is_left_for_the_new_one() {
    let shelf = Shelf::new().await;
    shelf.apply("m", "HF://org/held", &json!({})).await;
    shelf.desk.until("fetching", "m", |status| status.loading_substage.is_some()).await;
    let old = shelf.job("m-cache-prefetch").await.unwrap();
    shelf.apply("m", "HF://org/name", &json!({})).await;
    shelf.ready("m").await;
    let new = shelf.job("m-cache-prefetch").await.unwrap();
    assert_ne!(new.metadata.uid, old.metadata.uid);
    eventually("the pods of the old Job are gone", async || {
        (shelf.pods_of("m-cache-prefetch").await.len() == 1).then_some(())
    })
    .await;
    assert!(shelf.holds("m-cache", FETCHED).await);
    assert!(!shelf.holds("m-cache", "huggingface/org/held/main/model.bin").await);
}

#[tokio::test]
async fn weights_on_another_claim_are_looked_at_or_copied() {
    let shelf = Shelf::new().await;
    shelf.apply("first", "HF://org/name", &json!({})).await;
    shelf.ready("first").await;
    let there = "pvc://first-cache/huggingface/org/name/main";
    shelf.apply("reader", there, &json!({})).await;
    shelf.ready("reader").await;
    assert_eq!(shelf.job("reader-cache-check").await.unwrap().status.unwrap().succeeded, Some(1));
    shelf.apply("copier", there, &json!({ "cache": { "strategy": "SharedPVC" } })).await;
    shelf.ready("copier").await;
    assert_eq!(shelf.job("copier-cache-copy").await.unwrap().status.unwrap().succeeded, Some(1));
    assert!(shelf.holds("copier-cache", FETCHED).await);
    shelf.apply("lost", "pvc://first-cache/no/such", &json!({})).await;
    let lost = shelf.desk.until_phase("lost", Phase::Failed).await;
    assert!(lost.message.as_ref().is_some_and(|told| told.contains("no/such")), "{lost:?}");
    // Somebody puts it there: nothing tells the controller.
    let folder = shelf.on("first-cache", "no/such").await;
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("model.bin"), "{}").unwrap();
    shelf.ready("lost").await;
}

#[tokio::test]
async fn weights_are_made_smaller_before_an_engine_reads_them() {
    let shelf = Shelf::new().await;
    let quantize = json!({ "format": "AWQ", "useGPU": false, "maxMemoryGB": 1 });
    shelf.apply("m", "HF://org/name", &json!({ "quantize": quantize })).await;
    let status = shelf.ready("m").await;
    assert_eq!(status.cache.unwrap().quantization.unwrap().progress, Some(100));
    let pods = shelf.desk.pods("m").await;
    let arguments = pods[0].spec.as_ref().unwrap().containers[0].args.clone().unwrap();
    let path = arguments.iter().find(|word| word.contains("/models/quantized/m/awq-w4-g128-"));
    let path = path.unwrap().split("/models/").nth(1).unwrap();
    assert!(shelf.holds("m-cache", &format!("{path}/model.bin")).await);
}
