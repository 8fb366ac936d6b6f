//! How fast a model is on which node: measured by Jobs, kept in a ConfigMap, and what the scheduler does with it.

use flexinfer_e2e::{Images, Node};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::installed::{Installed, NAMESPACE, program, scheduled, with_scheduler};
use crate::crds::model;
use crate::shared::eventually;

/// An engine that takes as long as the node that it is on.
const ENGINE: &str = "registry.example/engine:v1";
const SCRIPT: &str = "case $NODE_NAME in fast) token=4ms;; *) token=20ms;; esac; \
                      exec \"$GATEWAY\" simulate --time-per-token=$token \"$@\"";

fn images() -> Images {
    let script = SCRIPT.replace("$GATEWAY", &program("flexinfer-gateway"));
    with_scheduler(Images::of_this_workspace())
        // The simulator's own first word comes from the controller.
        .with(ENGINE, ["sh", "-c", &format!("shift; {script}"), "engine"])
}

/// Two nodes that differ in what their agents say of their GPUs.
fn node(name: &str, architecture: &str) -> Node {
    Node::new(name)
        .label("flexinfer.ai/gpu.vendor", "NVIDIA")
        .label("flexinfer.ai/gpu.arch", architecture)
        .label("flexinfer.ai/gpu.vram", "24Gi")
        .label("flexinfer.ai/gpu.count", "1")
        .label("flexinfer.ai/gpu.int4", "true")
        .resource("nvidia.com/gpu", "1")
}

impl Installed {
    /// Has the model run on this node until it was measured there, and gives its speed.
    async fn measures_on(&self, node: &str) -> f64 {
        let selector = json!({ "spec": { "nodeSelector": { "kubernetes.io/hostname": node } } });
        self.patch("writer", &selector).await;
        let on = if node == "fast" { "arch=sm_90" } else { "arch=sm_80" };
        let complete = |model: &Value| {
            let all = model["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let found = all.into_iter().find(|one| one["type"] == "BenchmarkComplete");
            found.is_some_and(|one| {
                one["status"] == "True" && one["message"].as_str().unwrap().contains(on)
            })
        };
        let awaited = format!("it is measured on {node}\n{}", self.said("benchmark"));
        let measured = self.until(&awaited, "writer", complete).await;
        let speed = &measured["status"]["metrics"]["tokensPerSecond"];
        speed.as_str().unwrap().parse().unwrap()
    }

    /// Of which configuration of the model its speed was noted on nodes of this architecture.
    async fn configuration_on(&self, architecture: &str) -> Value {
        let line = ["get", "configmap", "flexinfer-benchmark-results", "--output=json"];
        let results: Value = serde_json::from_str(&self.kubectl(&line, "").await).unwrap();
        let notes = results["data"].as_object().unwrap().iter();
        let notes = notes.filter(|(key, _)| key.starts_with("meta_bench_"));
        let mut notes =
            notes.map(|(_, note)| serde_json::from_str::<Value>(note.as_str().unwrap()).unwrap());
        let class = format!("arch={architecture},");
        let of_class = notes.find(|note| note["deviceClass"].as_str().unwrap().contains(&class));
        of_class.unwrap()["configuration"].clone()
    }
}

#[tokio::test]
async fn a_model_is_measured_on_each_kind_of_node_and_then_goes_to_the_faster_one() {
    let [enabled, image] = scheduled();
    let values = [enabled, image, "agent.enabled=false".to_owned()];
    let nodes = vec![node("slow", "sm_80"), node("fast", "sm_90")];
    let installed = Installed::on(nodes, images(), &values).await;
    let spec = json!({
        "backend": "simulator",
        "image": ENGINE,
        "gpu": { "count": 1 },
        "nodeSelector": { "kubernetes.io/hostname": "slow" },
        "serverless": { "minReplicas": 1 },
    });
    let mut writer = model("writer", &spec);
    writer["metadata"]["annotations"] = json!({ "flexinfer.ai/benchmark": "auto" });
    installed.apply(&writer).await;

    let slow = installed.measures_on("slow").await;
    let fast = installed.measures_on("fast").await;
    assert!(fast > slow, "{fast} tokens per second on the fast node, {slow} on the slow one");
    let table = installed.kubectl(&["get", "models"], "").await;
    assert!(table.contains("TPS") && table.contains(&format!("{fast:.1}")), "{table}");
    let results = installed
        .kubectl(&["get", "configmap", "flexinfer-benchmark-results", "--output=json"], "")
        .await;
    let results: Value = serde_json::from_str(&results).unwrap();
    let measured = results["data"].as_object().unwrap().keys();
    let measured = measured.filter(|key| key.starts_with("bench_")).count();
    assert_eq!(measured, 2 * 2, "each kind, under the original's key and its own: {results}");
    let of_fast = installed.configuration_on("sm_90").await;
    let jobs = installed.kubectl(&["get", "jobs", "--output=name"], "").await;
    assert_eq!(jobs.lines().count(), 2, "each kind of node once: {jobs}");

    // Free to go anywhere, its next pod goes where it is fastest; so does each one after that.
    for tokens in [40, 50, 60] {
        let old = installed.pods("flexinfer.ai/model=writer").await.into_iter();
        let old: Vec<_> = old.filter_map(|pod| pod.metadata.name).collect();
        let another = json!({ "spec": {
            "nodeSelector": { "kubernetes.io/hostname": null },
            "config": { "answerTokens": tokens },
        } });
        installed.patch("writer", &another).await;
        let node = eventually("another pod serves", async || {
            let serving = installed.serving("writer").await.into_iter();
            let is_new =
                |pod: &Pod| pod.metadata.name.as_ref().is_some_and(|name| !old.contains(name));
            let mut new = serving.filter(|(_, pod)| is_new(pod));
            new.next().map(|(node, _)| node)
        })
        .await;
        assert_eq!(node, "fast", "{}", installed.said(&format!("{NAMESPACE}_flexinfer-scheduler")));
    }
    let (awaited, of_fast) = ("it is measured again as it is now", &of_fast);
    eventually(awaited, async || {
        (installed.configuration_on("sm_90").await != *of_fast).then_some(())
    })
    .await;
}
