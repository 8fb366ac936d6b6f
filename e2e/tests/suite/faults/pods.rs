//! Pods that are evicted, and pods that wait for a volume.

use flexinfer_crds::model::Phase;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, EvictParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::controller::{Desk, simulated};
use crate::gateway::{ask_for_a_stream, start};
use crate::shared::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_is_evicted_is_replaced_and_who_asks_meanwhile_is_answered_by_the_next() {
    let desk = Desk::new().await;
    let gateway = start(&desk.models, "one", desk.world().gateways_kubeconfig().await, &[]).await;
    desk.apply("m", &simulated(&json!({ "serverless": { "coldStartTimeout": "4m" } }))).await;
    gateway.knows("m").await;
    assert_eq!(gateway.ask("m").await.status(), 200);
    let old = desk.pods("m").await.first().unwrap().name_any();
    let pods: Api<Pod> = Api::namespaced(desk.world().client.clone(), &desk.world().namespace);
    pods.evict(&old, &EvictParams::default()).await.unwrap();
    // What comes once that is known waits.
    gateway.sees("m", |shown| shown["endpoints"][0]["state"] != "Open").await;
    for _ in 0..3 {
        let answer = gateway.ask("m").await;
        assert_eq!(answer.status(), 200, "{}\n{}", answer.text(), desk.log());
    }
    desk.until_phase("m", Phase::Ready).await;
    let pods = desk.pods("m").await;
    let serving = pods.iter().find(|pod| pod.metadata.deletion_timestamp.is_none());
    assert_ne!(serving.unwrap().name_any(), old);
}

/// What the gateway says of the engine in this pod.
fn endpoint<'s>(shown: &'s Value, uid: &str) -> Option<&'s Value> {
    shown["endpoints"].as_array()?.iter().find(|endpoint| endpoint["id"] == uid)
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_on_a_pod_that_is_evicted_are_finished_and_then_it_goes() {
    let desk = Desk::new().await;
    let gateway = start(&desk.models, "one", desk.world().gateways_kubeconfig().await, &[]).await;
    let two = json!({ "minReplicas": 2, "maxReplicas": 2, "coldStartTimeout": "4m" });
    let mut spec = simulated(&json!({ "serverless": two }));
    spec["config"]["args"] = json!(["--load-time=1s", "--time-per-token=40ms"]);
    desk.apply("m", &spec).await;
    let open = |endpoint: &&Value| endpoint["state"] == "Open";
    let all = |shown: &Value| shown["endpoints"].as_array().cloned().unwrap_or_default();
    gateway.sees("m", |shown| all(shown).iter().filter(open).count() == 2).await;

    let (stop, stopped) = watch::channel(false);
    let mut clients = JoinSet::new();
    for _ in 0..6 {
        let (address, stopped) = (gateway.address, stopped.clone());
        clients.spawn(async move {
            let mut answers = Vec::new();
            while !*stopped.borrow() {
                // Each takes its engine two seconds.
                answers.push(ask_for_a_stream(address, "m").await);
            }
            answers
        });
    }
    gateway.sees("m", |shown| all(shown).iter().all(|one| one["inFlight"] != 0)).await;
    let old = desk.pods("m").await.swap_remove(0);
    let (name, uid) = (old.name_any(), old.uid().unwrap());
    let pods: Api<Pod> = Api::namespaced(desk.world().client.clone(), &desk.world().namespace);
    pods.evict(&name, &EvictParams::default()).await.unwrap();
    // It takes nothing new, and nothing that it had is left.
    let done = |one: &Value| one["state"] == "Leaving" && one["inFlight"] == 0;
    gateway.sees("m", |shown| endpoint(shown, &uid).is_none_or(done)).await;
    stop.send(true).unwrap();
    for answer in clients.join_all().await.into_iter().flatten() {
        let whole = answer.complete && answer.text().contains("[DONE]");
        assert!(answer.status() == 200 && whole, "{}\n{}", answer.text(), desk.log());
    }
    eventually("the pod is gone", async || {
        pods.get_opt(&name).await.unwrap().is_none_or(|pod| pod.uid() != old.uid()).then_some(())
    })
    .await;
    assert!(desk.log().contains("has nothing left to do"), "it slept on:\n{}", desk.log());
}

/// A class that nobody makes volumes for.
const NOBODYS: &str = "nobodys";

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_without_a_volume_is_told_and_the_model_comes_up_once_it_has_one() {
    let desk = Desk::new().await;
    let world = desk.world();
    let claims: Api<PersistentVolumeClaim> =
        Api::namespaced(world.client.clone(), &world.namespace);
    let asked = json!({
        "accessModes": ["ReadWriteMany"],
        "storageClassName": NOBODYS,
        "resources": { "requests": { "storage": "1Gi" } },
    });
    let claim = json!({ "metadata": { "name": "weights" }, "spec": asked });
    let claim = serde_json::from_value(claim).unwrap();
    claims.create(&PostParams::default(), &claim).await.unwrap();
    let pinned = json!({ "source": "pvc://weights/m", "serverless": { "minReplicas": 1 } });
    desk.apply("m", &simulated(&pinned)).await;
    let told = |status: &flexinfer_crds::ModelStatus| {
        let message = status.message.as_deref().unwrap_or_default();
        message.contains("weights") && message.contains("volume")
    };
    let status = desk.until("told to wait for a volume", "m", told).await;
    assert_eq!(status.phase, Some(Phase::Pending), "{status:?}");

    let folder = world.cluster.folder().join("volumes").join(&world.namespace);
    std::fs::create_dir_all(folder.join("m")).unwrap();
    std::fs::write(folder.join("m/weights.bin"), "weights").unwrap();
    let volumes: Api<PersistentVolume> = Api::all(world.client.clone());
    let volume = json!({
        "metadata": { "name": world.namespace },
        "spec": {
            "capacity": { "storage": "1Gi" },
            "accessModes": ["ReadWriteMany"],
            "storageClassName": NOBODYS,
            "claimRef": { "namespace": world.namespace, "name": "weights" },
            "hostPath": { "path": folder },
        },
    });
    let volume = serde_json::from_value(volume).unwrap();
    volumes.create(&PostParams::default(), &volume).await.unwrap();
    desk.until_phase("m", Phase::Ready).await;
    volumes.delete(&world.namespace, &DeleteParams::default()).await.unwrap();
}
