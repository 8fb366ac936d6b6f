//! That many nodes and pods can be claimed to run, as the tests of scale do.

use flexinfer_e2e::{Node, Pretence};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::json;

use crate::shared::{World, eventually};

#[tokio::test]
async fn hundreds_of_pods_run_on_nodes_that_start_nothing_and_leave_when_told() {
    let world = World::new().await;
    let node = |number| {
        Node::new(&format!("{}-{number}", world.namespace)).label("test", &world.namespace)
    };
    let _nodes = Pretence::start(&world.cluster, (0..20).map(node).collect()).await.unwrap();
    let labels = json!({ "app": "many" });
    let deployment = serde_json::from_value(json!({
        "metadata": { "name": "many" },
        "spec": {
            "replicas": 200,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "nodeSelector": { "test": world.namespace },
                    "containers": [{ "name": "engine", "image": "any" }],
                },
            },
        },
    }))
    .unwrap();
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    deployments.create(&PostParams::default(), &deployment).await.unwrap();
    eventually("all are available", async || {
        let status = deployments.get("many").await.unwrap().status?;
        (status.available_replicas == Some(200)).then_some(())
    })
    .await;
    deployments.delete("many", &DeleteParams::background()).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), &world.namespace);
    eventually("none is left", async || {
        pods.list(&ListParams::default()).await.unwrap().items.is_empty().then_some(())
    })
    .await;
}
