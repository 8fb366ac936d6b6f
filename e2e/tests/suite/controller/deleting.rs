//! Models that are deleted, whatever they were doing and whatever they lacked: nothing of theirs is left, and
//! nothing is waited for for ever.

use std::sync::Arc;

use flexinfer_crds::ModelStatus;
use flexinfer_crds::model::Phase;
use flexinfer_e2e::{Images, Kubelet, Node};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::simulated;
use super::weights::{Shelf, cached};
use crate::crds::{Models, model};
use crate::machine::phase;
use crate::owned::Owned;
use crate::shared::{World, eventually, start};

/// Deletes Models as a person does, who waits until they are gone.
async fn delete(models: &Models, names: &[&str]) {
    let arguments = [&["delete", "models", "--wait", "--timeout=90s"], names].concat();
    models.succeed(&arguments, "").await;
}

async fn owned_by(models: &Models, name: &str) -> Owned {
    Owned::by(models.world.cluster.kubectl(), &models.world.namespace, name).await
}

#[tokio::test]
async fn k8s_13_a_deleted_model_takes_its_claim_and_its_job_along_whatever_that_was_doing() {
    let shelf = Shelf::new().await;
    let of = [
        ("finished", "HF://org/name", "Succeeded"),
        ("running", "HF://org/held", "Running"),
        ("failed", "HF://org/gated", "Failed"),
    ];
    for (name, source, _) in of {
        shelf.apply(name, source, &json!({})).await;
    }
    shelf.ready("finished").await;
    let mut all = Vec::new();
    for (name, _, ended) in of {
        let pods = async || shelf.pods_of(&format!("{name}-cache-prefetch")).await;
        eventually(&format!("the Job's pod is {ended}"), async || {
            pods().await.iter().any(|pod| phase(pod) == ended).then_some(())
        })
        .await;
        let owned = owned_by(&shelf.desk.models, name).await;
        owned.has(&["Job", "Pod", "PersistentVolumeClaim", "PersistentVolume", "Service"]);
        all.push(owned);
    }
    all[0].has(&["Deployment", "ReplicaSet", "EndpointSlice"]);

    delete(&shelf.desk.models, &["finished", "running", "failed"]).await;
    for owned in all {
        owned.are_gone().await;
    }
}

#[tokio::test]
async fn k8s_14_a_model_that_lacks_what_it_names_can_be_deleted() {
    let shelf = Shelf::new().await;
    let class = json!({ "cache": { "storageClass": "nobodys" } });
    shelf.apply("without-class", "HF://org/name", &class).await;
    shelf.apply("without-claim", "pvc://nobodys/m", &json!({})).await;
    let pinned = json!({ "source": "HF://org/name", "serverless": { "minReplicas": 1 } });
    let mut secret = model("without-secret", &simulated(&pinned));
    secret["spec"]["nodeSelector"] = json!({ "test": shelf.desk.world().namespace });
    secret["metadata"]["annotations"] = json!({ "flexinfer.ai/hf-token-secret": "nobodys" });
    shelf.desk.models.apply(&secret).await;

    let stuck =
        |status: &ModelStatus| status.phase != Some(Phase::Ready) && cached(status).0 == "False";
    let mut all = Vec::new();
    for (name, kinds) in [
        ("without-class", &["Job", "Pod", "PersistentVolumeClaim"][..]),
        ("without-claim", &["Service"]),
        ("without-secret", &["Job", "Pod", "PersistentVolumeClaim"]),
    ] {
        shelf.desk.until("without its weights", name, stuck).await;
        let owned = eventually("it has come as far as it can", async || {
            Some(owned_by(&shelf.desk.models, name).await).filter(|owned| owned.includes(kinds))
        });
        all.push(owned.await);
    }
    delete(&shelf.desk.models, &["without-class", "without-claim", "without-secret"]).await;
    for owned in all {
        owned.are_gone().await;
    }
}

/// A node of its own that can lose power alone.
async fn another_node(world: &World, name: &str) -> Kubelet {
    let node = Node::new(name)
        .label("test", name)
        .label("flexinfer.ai/gpu.vendor", "NVIDIA")
        .resource("nvidia.com/gpu", "1");
    Kubelet::start(&world.cluster, vec![node], Images::of_this_workspace()).await.unwrap()
}

/// A pinned model on the node of that label.
fn pinned_on(node: &str, name: &str, more: &Value) -> Value {
    let mut spec = simulated(more);
    spec["nodeSelector"] = json!({ "test": node });
    spec["serverless"] = json!({ "minReplicas": 1 });
    model(name, &spec)
}

/// One whose copy of the weights stays in the node's memory, which has to be cleaned up after it.
fn kept_in_memory_of(node: &str, name: &str) -> Value {
    let loaded = json!({ "strategy": "SharedPVC", "flashLoader": { "enabled": true } });
    let gpu = json!({ "vendor": "nvidia", "shared": name });
    let more = json!({ "source": "HF://org/name", "cache": loaded, "gpu": gpu });
    pinned_on(node, name, &more)
}

async fn in_memory_of(models: &Models, node: &str, name: &str) {
    eventually(&format!("{name} is ready, with a copy on {node}"), async || {
        let status = models.api().get(name).await.unwrap().data["status"].clone();
        (status["phase"] == "Ready" && status["cache"]["nodes"] == json!([node])).then_some(())
    })
    .await;
}

async fn apply_definitions(models: &Models) {
    let folder = crate::crds::checkout().join("crds/yaml");
    let folder = folder.to_str().unwrap();
    models.succeed(&["apply", "--server-side", "--filename", folder], "").await;
    let established = ["wait", "--for=condition=Established", "crd/models.inference.flexinfer.ai"];
    models.succeed(&established, "").await;
}

#[tokio::test]
async fn k8s_14_a_lost_node_a_namespace_and_the_definition_itself_hold_no_model_up() {
    let cluster = Arc::new(start().await);
    let mut shelf = Shelf::of(World::of(Arc::clone(&cluster)).await).await;
    let kubeconfig = cluster.kubeconfig();
    let hub = shelf.hub.url();
    shelf.desk.start_controller_by(&kubeconfig, &["--all-namespaces", "--hf-endpoint", &hub]);
    let here = shelf.desk.world().namespace.clone();
    let lost = another_node(shelf.desk.world(), "lost").await;
    let models = &shelf.desk.models;
    models.apply(&kept_in_memory_of("lost", "on-lost-node")).await;
    models.apply(&pinned_on(&here, "last", &json!({}))).await;
    let elsewhere = Models::of(World::of(Arc::clone(&cluster)).await).await;
    elsewhere.apply(&kept_in_memory_of(&here, "in-memory")).await;
    elsewhere.apply(&pinned_on(&here, "fetching", &json!({ "source": "HF://org/held" }))).await;
    in_memory_of(models, "lost", "on-lost-node").await;
    in_memory_of(&elsewhere, &here, "in-memory").await;
    eventually("a fetch is under way", async || {
        let fetching = elsewhere.api().get("fetching").await.unwrap();
        (fetching.data["status"]["loadingSubstage"] == "Downloading").then_some(())
    })
    .await;

    drop(lost);
    shelf.desk.api().delete("on-lost-node", &DeleteParams::default()).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(elsewhere.world.client.clone());
    let namespace = &elsewhere.world.namespace;
    namespaces.delete(namespace, &DeleteParams::default()).await.unwrap();
    eventually("the namespace is gone", async || {
        namespaces.get_opt(namespace).await.unwrap().is_none().then_some(())
    })
    .await;
    eventually("the Model on the lost node is gone", async || {
        shelf.desk.api().get_opt("on-lost-node").await.unwrap().is_none().then_some(())
    })
    .await;

    shelf.desk.until_phase("last", Phase::Ready).await;
    let owned = owned_by(models, "last").await;
    owned.has(&["Deployment", "Pod", "Service"]);
    let definition = ["delete", "crd", "models.inference.flexinfer.ai", "--timeout=90s"];
    models.succeed(&definition, "").await;
    owned.are_gone().await;
    // The controller was there all the time, and goes on once there are Models again.
    apply_definitions(models).await;
    models.apply(&pinned_on(&here, "next", &json!({}))).await;
    shelf.desk.until_phase("next", Phase::Ready).await;
}
