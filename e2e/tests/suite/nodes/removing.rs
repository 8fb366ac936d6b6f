//! FlexInfer and all its Models removed at once, with the namespace that they are in.

use flexinfer_e2e::{Images, Node};
use serde_json::json;

use super::installed::{Installed, NAMESPACE};
use crate::crds::model;

#[tokio::test]
async fn k8s_14_the_namespace_that_flexinfer_itself_is_in_can_be_deleted() {
    let nodes = vec![Node::new("first")];
    // Kubernetes looks again only after half of the longest time that a pod may take to end.
    let shutdown = "proxy.gracefulShutdown";
    let soon = [
        format!("{shutdown}.drainDelay=1s"),
        format!("{shutdown}.timeout=10s"),
        format!("{shutdown}.terminationGracePeriodSeconds=20"),
    ];
    let installed = Installed::on(nodes, Images::of_this_workspace(), &soon).await;
    // One that is up would first finish what it has, for as long as it may.
    installed.apply(&model("asleep", &json!({ "backend": "simulator" }))).await;
    installed.until("asleep", "asleep", |model| model["status"]["phase"] == "Idle").await;
    installed.kubectl(&["delete", "namespace", NAMESPACE, "--timeout=100s"], "").await;
}
