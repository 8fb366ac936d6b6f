//! Nodes that are gone: with their object, or without a word.

use std::net::SocketAddr;
use std::time::Duration;

use flexinfer_crds::model::Phase;
use flexinfer_e2e::{Images, Kubelet, Node};
use k8s_openapi::api::core::v1;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::controller::{Desk, simulated};
use crate::gateway::{Gateway, start};
use crate::shared::eventually;

/// A model that is up on a node which then loses power, and another node beside it.
async fn on_a_node_without_power(patience: &Value) -> (Desk, Gateway) {
    let mut desk = Desk::new().await;
    let gateway = start(&desk.models, "one", desk.world().gateways_kubeconfig().await, &[]).await;
    let spec = json!({ "serverless": { "coldStartTimeout": "4m" }, "tolerations": patience });
    desk.apply("m", &simulated(&spec)).await;
    gateway.knows("m").await;
    assert_eq!(gateway.ask("m").await.status(), 200);
    let namespace = &desk.world().namespace;
    let other = Node::new(&format!("{namespace}-other")).label("test", namespace);
    let images = Images::of_this_workspace();
    let other = Kubelet::start(&desk.world().cluster, vec![other], images).await.unwrap();
    let engine = gateway.shown("m").await["endpoints"][0]["address"].clone();
    let engine: SocketAddr = engine.as_str().unwrap().parse().unwrap();
    // With the old kubelet end its processes and its heartbeats.
    drop(std::mem::replace(&mut desk.kubelet, other));
    eventually("the engine is dead", async || {
        let tried = timeout(Duration::from_secs(1), TcpStream::connect(engine)).await;
        (!matches!(tried, Ok(Ok(_)))).then_some(())
    })
    .await;
    (desk, gateway)
}

/// Who asks waits, and is answered from the other node.
async fn is_served_from_the_other_node(desk: &Desk, gateway: &Gateway) {
    let answer = gateway.ask("m").await;
    assert_eq!(answer.status(), 200, "{}\n{}", answer.text(), desk.log());
    let elsewhere = format!("{}-other", desk.world().namespace);
    let there = |status: &flexinfer_crds::ModelStatus| {
        let node = status.gpu.as_ref().and_then(|gpu| gpu.node.clone());
        status.phase == Some(Phase::Ready) && node.as_ref() == Some(&elsewhere)
    };
    desk.until("ready on the other node", "m", there).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_deleted_is_left_for_another_and_no_request_is_lost() {
    let (desk, gateway) = on_a_node_without_power(&json!([])).await;
    let nodes: Api<v1::Node> = Api::all(desk.world().client.clone());
    nodes.delete(&desk.world().namespace, &DeleteParams::default()).await.unwrap();
    is_served_from_the_other_node(&desk, &gateway).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_falls_silent_is_left_for_another_and_no_request_is_lost() {
    let soon = json!([{
        "key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
        "tolerationSeconds": 1,
    }]);
    let (desk, gateway) = on_a_node_without_power(&soon).await;
    is_served_from_the_other_node(&desk, &gateway).await;
}
