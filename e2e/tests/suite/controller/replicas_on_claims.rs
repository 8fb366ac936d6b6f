//! Several replicas of a model whose weights are on a claim: what fills it starts, and where they may run follows
//! from how many nodes can use it.

use std::collections::BTreeSet;

use flexinfer_crds::ModelStatus;
use flexinfer_crds::model::Phase;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::PostParams;
use serde_json::json;

use super::weights::Shelf;
use crate::shared::eventually;

/// The condition `Scaled`: its status, its reason and what it says.
fn scaled(status: &ModelStatus) -> Option<(&str, &str, &str)> {
    let found = status.conditions.iter().find(|condition| condition.type_ == "Scaled")?;
    Some((&found.status, &found.reason, &found.message))
}

/// The nodes of the pods, once so many are all there are and all of them serve.
async fn nodes_of(shelf: &Shelf, model: &str, count: usize) -> BTreeSet<String> {
    eventually(&format!("{count} pods of {model} serve"), async || {
        let pods = shelf.desk.pods(model).await;
        let serving = pods.iter().filter(|pod| {
            let conditions =
                pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
            let mut ready = conditions.filter(|found| found.type_ == "Ready");
            ready.next().is_some_and(|found| found.status == "True")
        });
        let nodes: Vec<_> = serving.filter_map(|pod| pod.spec.clone()?.node_name).collect();
        (nodes.len() == count && pods.len() == count).then(|| nodes.into_iter().collect())
    })
    .await
}

#[tokio::test]
async fn k8s_16_load_brings_a_second_replica_to_the_node_that_has_the_claim() {
    let shelf = Shelf::on_nodes(2).await;
    let two = json!({
        "serverless": { "maxReplicas": 2 },
        "config": { "args": ["--load-time=1s"], "maxConcurrency": 1 },
    });
    shelf.apply("m", "HF://org/name", &two).await;
    shelf.desk.until("fetched", "m", |status| status.phase == Some(Phase::Idle)).await;
    shelf.desk.traffic("m", 0, 1).await;
    shelf.ready("m").await;
    shelf.desk.traffic("m", 1, 3).await;
    assert_eq!(nodes_of(&shelf, "m", 2).await.len(), 1, "one node at a time can use the claim");
    shelf
        .desk
        .until("scaled", "m", |status| scaled(status).is_some_and(|told| told.0 == "True"))
        .await;
}

#[tokio::test]
async fn k8s_16_replicas_that_find_no_room_beside_their_claim_are_told_of_and_spread_on_a_shared_one()
 {
    let shelf = Shelf::on_nodes(2).await;
    let two = json!({ "gpu": { "count": 1 }, "serverless": { "minReplicas": 2 } });
    shelf.apply("m", "HF://org/name", &two).await;
    let lacking = shelf.desk.until("lacking a replica", "m", |status| {
        let serves = status.phase == Some(Phase::Ready);
        serves && scaled(status).is_some_and(|told| told.1 == "Unschedulable")
    });
    let status = lacking.await;
    let (held, _, said) = scaled(&status).unwrap();
    assert!(held == "False" && said.starts_with("1 of 2 replicas serve"), "{said}");
    let schedulable = status.conditions.iter().find(|found| found.type_ == "Schedulable").unwrap();
    assert!(schedulable.message.contains("can be used by one node at a time"), "{schedulable:?}");

    let shared = json!({
        "metadata": { "name": "shared" },
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    let claim: PersistentVolumeClaim = serde_json::from_value(shared).unwrap();
    shelf.api::<PersistentVolumeClaim>().create(&PostParams::default(), &claim).await.unwrap();
    let mut spread = two.clone();
    spread["cache"] = json!({ "pvcName": "shared" });
    shelf.apply("m", "HF://org/name", &spread).await;
    assert_eq!(nodes_of(&shelf, "m", 2).await.len(), 2, "each on a node of its own");
    shelf
        .desk
        .until("scaled", "m", |status| scaled(status).is_some_and(|told| told.0 == "True"))
        .await;
}
