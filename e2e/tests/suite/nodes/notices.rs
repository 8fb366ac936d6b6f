//! What becomes of engines at a notice that their machine is taken, where there is more to it than another node.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::cloud::Cloud;
use super::installed::Installed;
use super::moving::{Caller, NODES, installed_in, pinned, writer};
use crate::crds::model;
use crate::shared::eventually;

impl Installed {
    /// `cloud` leaves the machine of this node after all, which the node tells from then on.
    async fn keeps(&self, cloud: &Cloud, node: &str) {
        cloud.spares(self.agent_of(node).await);
        eventually("the node is as it was", async || {
            (self.marks_of(node).await == (false, false)).then_some(())
        })
        .await;
    }

    /// The condition `Scaled` of `writer`, once its reason is this one: what it says.
    async fn is_scaled(&self, reason: &str) -> String {
        let scaled = |model: &Value| {
            let conditions = model["status"]["conditions"].as_array()?;
            conditions.iter().find(|found| found["type"] == "Scaled").cloned()
        };
        let told = |model: &Value| scaled(model).is_some_and(|found| found["reason"] == reason);
        let model = self.until("it is told what keeps the other engine away", "writer", told).await;
        scaled(&model).unwrap()["message"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_notice_that_passes_leaves_the_engine_where_it_is() {
    let cloud = Cloud::start().await;
    let installed = installed_in(&cloud).await;
    installed.apply(&pinned()).await;
    let (node, engine) = installed.first_engine().await;
    let caller = Caller::start(installed.gateway().await, "writer");
    installed.loses(&cloud, &node).await;
    let said = installed.is_scaled("Unschedulable").await;
    assert!(said.starts_with("0 of 1 replicas serve, beside 1 to be replaced: "), "{said}");

    installed.keeps(&cloud, &node).await;
    eventually("it is its ReplicaSet's again, and the only one", async || {
        let pods = installed.pods("flexinfer.ai/model=writer").await;
        let [pod] = pods.as_slice() else { return None };
        let of_set = pod.owner_references().iter().any(|owner| owner.kind == "ReplicaSet");
        (pod.name_any() == engine.name_any() && of_set).then_some(())
    })
    .await;
    let whole = |model: &Value| {
        let conditions = model["status"]["conditions"].as_array().unwrap();
        conditions.iter().all(|found| found["type"] != "Scaled")
    };
    installed.until("nothing is told of it any more", "writer", whole).await;
    caller.gets(20).await;
    let lost = caller.leaves().await;
    assert!(lost.is_empty(), "{} requests were lost: {lost:?}", lost.len());
}

#[tokio::test]
async fn an_engine_on_a_claim_of_one_node_goes_once_another_has_a_node_and_requests_wait() {
    let cloud = Cloud::start().await;
    let installed = installed_in(&cloud).await;
    installed.has_weights("ReadWriteOnce").await;
    let mut writer = writer(1);
    writer["spec"]["source"] = json!("pvc://weights/llama");
    writer["spec"]["config"]["args"] = json!(["--load-time=2s", "--time-per-token=1ms"]);
    installed.apply(&writer).await;
    let (node, engine) = installed.first_engine().await;
    let caller = Caller::start(installed.gateway().await, "writer");
    caller.gets(1).await;
    installed.loses(&cloud, &node).await;
    let first = eventually("the old one ends", async || {
        let pods = installed.pods("flexinfer.ai/model=writer").await;
        let ends = |pod: &&Pod| pod.metadata.deletion_timestamp.is_some();
        let old = pods.iter().find(|pod| pod.name_any() == engine.name_any());
        old.is_none_or(|old| ends(&old)).then_some(pods)
    })
    .await;
    let placed = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    let new = first.iter().find(|pod| pod.name_any() != engine.name_any());
    assert!(new.is_some_and(placed), "it went before there was another: {first:?}");
    let other = NODES.into_iter().find(|other| *other != node).unwrap();
    installed.leaves_to(other, 1, &engine).await;
    caller.gets(2).await;
    let lost = caller.leaves().await;
    assert!(lost.is_empty(), "{} requests were lost: {lost:?}\n{}", lost.len(), installed.said(""));
}

#[tokio::test]
async fn a_quota_without_room_for_another_engine_is_told_and_an_edit_ends_the_old_one() {
    let cloud = Cloud::start().await;
    let installed = installed_in(&cloud).await;
    // With a GPU an edit ends the old engine first.
    let mut alone = writer(1);
    alone["spec"]["gpu"] = json!({ "count": 1 });
    installed.apply(&alone).await;
    let (node, engine) = installed.first_engine().await;
    let now = installed.pods("").await.len().to_string();
    installed
        .apply(&json!({
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": { "name": "full" },
            "spec": { "hard": { "pods": now } },
        }))
        .await;
    eventually("the quota is in force", async || {
        let quota = installed.kubectl(&["get", "resourcequota", "full", "--output=json"], "").await;
        let quota: Value = serde_json::from_str(&quota).unwrap();
        (quota["status"]["used"]["pods"] == now).then_some(())
    })
    .await;
    installed.loses(&cloud, &node).await;
    let said = installed.is_scaled("QuotaExceeded").await;
    assert!(said.contains("raise the quota"), "{said}");
    installed.asks("writer").await;
    let serving = installed.serving("writer").await;
    assert_eq!(serving.first().map(|(_, pod)| pod.name_any()), Some(engine.name_any()));

    let slower = json!(["--time-per-token=2ms", "--time-to-first-token=1ms"]);
    installed.patch("writer", &json!({ "spec": { "config": { "args": slower } } })).await;
    let other = NODES.into_iter().find(|other| *other != node).unwrap();
    installed.leaves_to(other, 1, &engine).await;
    installed.asks("writer").await;
}

#[tokio::test]
async fn who_has_the_gpu_of_a_group_moves_and_gives_it_up_where_it_is_then() {
    let cloud = Cloud::start().await;
    let installed = installed_in(&cloud).await;
    let arguments = json!({ "args": ["--load-time=1s", "--time-per-token=1ms"] });
    for name in ["writer", "reader"] {
        let gpu = json!({ "count": 1, "shared": "desk" });
        let spec = json!({ "backend": "simulator", "gpu": gpu, "config": arguments });
        installed.apply(&model(name, &spec)).await;
    }
    let caller = Caller::start(installed.gateway().await, "writer");
    let (node, engine) = installed.first_engine().await;
    installed.loses(&cloud, &node).await;
    let other = NODES.into_iter().find(|other| *other != node).unwrap();
    installed.leaves_to(other, 1, &engine).await;
    caller.gets(10).await;
    let lost = caller.leaves().await;
    assert!(lost.is_empty(), "{} requests were lost: {lost:?}", lost.len());

    installed.asks("reader").await;
    eventually("the reader serves where the writer did", async || {
        let serving = installed.serving("reader").await;
        (serving.len() == 1 && serving[0].0 == other).then_some(())
    })
    .await;
    let left = installed.pods("flexinfer.ai/model=writer").await;
    assert!(left.is_empty(), "both have a GPU of the group: {left:?}");
}
