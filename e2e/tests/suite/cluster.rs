//! That the cluster is what the other tests take it for.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::shared::{World, eventually, start};

/// A node that nobody looks after says that it is well, which counts for a while.
async fn create_node(client: &Client, name: &str, gpus: &str) {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    let amounts = json!({ "cpu": "8", "memory": "32Gi", "pods": "100", "nvidia.com/gpu": gpus });
    let status = json!({
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{
                "type": "Ready",
                "status": "True",
                "reason": "Test",
                "message": "",
                "lastHeartbeatTime": null,
                "lastTransitionTime": null,
            }],
        },
    });
    nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

fn deployment_with_gpu() -> Deployment {
    serde_json::from_value(json!({
        "metadata": { "name": "engine" },
        "spec": {
            "selector": { "matchLabels": { "app": "engine" } },
            "template": {
                "metadata": { "labels": { "app": "engine" } },
                "spec": {
                    "containers": [{
                        "name": "engine",
                        "image": "engine",
                        "resources": { "limits": { "nvidia.com/gpu": "1" } },
                    }],
                },
            },
        },
    }))
    .unwrap()
}

#[tokio::test]
async fn a_deployments_pod_is_made_and_waits_for_a_node_with_a_gpu() {
    let world = World::new().await;
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    deployments.create(&PostParams::default(), &deployment_with_gpu()).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), &world.namespace);
    let the_pod = async || pods.list(&ListParams::default()).await.unwrap().items.pop();

    let reason = eventually("a pod that cannot be scheduled", async || {
        let conditions = the_pod().await?.status?.conditions?;
        let condition = conditions.into_iter().find(|found| found.type_ == "PodScheduled")?;
        (condition.status == "False").then_some(condition.reason?)
    })
    .await;
    assert_eq!(reason, "Unschedulable");

    create_node(&world.client, "with-gpu", "1").await;
    let node = eventually("a pod on a node", async || the_pod().await?.spec?.node_name).await;
    assert_eq!(node, "with-gpu");
}

#[tokio::test]
async fn clusters_live_side_by_side_and_leave_nothing() {
    let (first, second) = tokio::join!(start(), start());
    let map = ConfigMap {
        metadata: kube::api::ObjectMeta { name: Some("only-here".into()), ..Default::default() },
        ..ConfigMap::default()
    };
    let here: Api<ConfigMap> = Api::namespaced(first.client().unwrap(), "default");
    let there: Api<ConfigMap> = Api::namespaced(second.client().unwrap(), "default");
    here.create(&PostParams::default(), &map).await.unwrap();
    assert!(there.get_opt("only-here").await.unwrap().is_none(), "both are one cluster");

    let folder = first.folder().to_path_buf();
    drop(first);
    assert!(here.get("only-here").await.is_err(), "its API server still answers");
    assert!(!folder.exists(), "{} is left behind", folder.display());
    assert!(there.get_opt("only-here").await.is_ok(), "its neighbour is gone too");
}

#[tokio::test]
async fn every_write_is_noted_with_its_writer() {
    let world = World::new().await;
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let map = serde_json::from_value(json!({ "metadata": { "name": "noted" } })).unwrap();
    let created: ConfigMap = maps.create(&PostParams::default(), &map).await.unwrap();
    assert_eq!(created.name_any(), "noted");

    let write = eventually("the write in the audit log", async || {
        let writes = world.cluster.writes().unwrap();
        writes.into_iter().find(|write| {
            write.namespace == world.namespace
                && write.resource == "configmaps"
                && write.user == "admin"
        })
    })
    .await;
    assert_eq!((write.verb.as_str(), write.status), ("create", 201));
}

#[tokio::test]
async fn a_service_account_may_do_what_its_roles_allow_and_nothing_else() {
    let world = World::new().await;
    let kubeconfig = world.cluster.kubeconfig_of(&world.namespace, "default").await.unwrap();
    let kubectl = world.cluster.kubectl_by(&kubeconfig);
    let list = ["get", "pods", "--namespace", &world.namespace];
    let refused = kubectl.run(&list).await.unwrap();
    assert!(refused.stderr.contains("Forbidden"), "{refused:?}");

    let account = format!("{}:default", world.namespace);
    let grant = ["create", "rolebinding", "reads", "--clusterrole=view", "--serviceaccount"];
    let grant = [grant.as_slice(), &[&account, "--namespace", &world.namespace]].concat();
    let granted = world.cluster.kubectl().run(&grant).await.unwrap();
    assert!(granted.success, "{granted:?}");
    eventually("it may read", async || kubectl.run(&list).await.unwrap().success.then_some(()))
        .await;
}
