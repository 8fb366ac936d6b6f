//! The real kube-scheduler with our extender, and with extenders that fail.

mod extender;
mod faults;
mod placing;

use flexinfer_e2e::Scheduler;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::shared::{World, eventually};

/// A scheduler of the test's own, for the pods and nodes of the test's own.
struct Stage {
    world: World,
    scheduler: Vec<Scheduler>,
}

/// How a scheduler reaches an extender at `port`, in the form of node names; `change` says more.
fn extender(port: u16, change: &Value) -> Value {
    let mut extender = json!({
        "urlPrefix": format!("http://127.0.0.1:{port}"),
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        // Ours shall count for more than all of the scheduler's own scores together.
        "weight": 1000,
        "nodeCacheCapable": true,
        "httpTimeout": "20s",
    });
    for (key, value) in change.as_object().unwrap() {
        extender[key] = value.clone();
    }
    extender
}

/// `base` with what `change` says over it.
fn merge(base: &mut Value, change: &Value) {
    match change.as_object() {
        Some(fields) => fields.iter().for_each(|(key, value)| merge(&mut base[key], value)),
        None => *base = change.clone(),
    }
}

impl Stage {
    async fn new() -> Self {
        Self { world: World::new().await, scheduler: Vec::new() }
    }

    /// A scheduler called `name` that asks `extender`.
    fn schedule_by(&mut self, name: &str, extender: &Value) {
        let name = self.scheduler_name(name);
        let scheduler = self.world.cluster.add_scheduler(&name, &json!([extender])).unwrap();
        self.scheduler.push(scheduler);
    }

    fn scheduler_name(&self, name: &str) -> String {
        format!("{}-{name}", self.world.namespace)
    }

    /// A node with two free GPUs, for the pods of one `situation`. `change` says what is different of its
    /// labels and annotations.
    async fn node(&self, situation: &str, name: &str, change: &Value) {
        let nodes: Api<Node> = Api::all(self.world.client.clone());
        let name = self.node_name(situation, name);
        let mut node = json!({
            "metadata": {
                "name": name,
                "labels": {
                    "situation": self.scheduler_name(situation),
                    "flexinfer.ai/gpu.vendor": "NVIDIA",
                    "flexinfer.ai/gpu.arch": "sm_89",
                    "flexinfer.ai/gpu.vram": "24Gi",
                    "flexinfer.ai/gpu.count": "2",
                    "flexinfer.ai/gpu.int4": "true",
                },
                "annotations": { "flexinfer.ai/gpu-free-memory": "49152" },
            },
            // Nobody else's pods shall come here.
            "spec": { "taints": [{ "key": "situation", "effect": "NoSchedule" }] },
        });
        merge(&mut node["metadata"], change);
        let node = serde_json::from_value(node).unwrap();
        nodes.create(&PostParams::default(), &node).await.unwrap();
        let amounts = json!({ "cpu": "8", "memory": "32Gi", "pods": "100", "nvidia.com/gpu": "2" });
        let ready = json!({ "type": "Ready", "status": "True", "reason": "Test", "message": "",
            "lastHeartbeatTime": null, "lastTransitionTime": null });
        let status = json!({ "status":
            { "capacity": amounts, "allocatable": amounts, "conditions": [ready] } });
        nodes.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }

    fn node_name(&self, situation: &str, name: &str) -> String {
        format!("{}-{situation}-{name}", self.world.namespace)
    }

    /// A pod of a vLLM that serves llama with one GPU and needs 20000 MiB, for `situation`'s nodes.
    async fn pod(&self, scheduler: &str, situation: &str, name: &str, change: &Value) {
        let pods = self.pods();
        let mut pod = json!({
            "metadata": {
                "name": format!("{situation}-{name}"),
                "labels": { "flexinfer.ai/model": "llama", "flexinfer.ai/backend": "vllm" },
                "annotations": { "flexinfer.ai/gpu.vram-estimate-mb": "20000" },
            },
            "spec": {
                "schedulerName": self.scheduler_name(scheduler),
                "nodeSelector": { "situation": self.scheduler_name(situation) },
                "tolerations": [{ "operator": "Exists" }],
                "containers": [{ "name": "engine", "image": "engine",
                    "resources": { "limits": { "nvidia.com/gpu": "1" } } }],
            },
        });
        merge(&mut pod, change);
        let pod = serde_json::from_value(pod).unwrap();
        pods.create(&PostParams::default(), &pod).await.unwrap();
    }

    /// The node that the pod was given, by its short name.
    async fn landed(&self, situation: &str, name: &str) -> String {
        let pods = self.pods();
        let pod = format!("{situation}-{name}");
        let node = eventually(&format!("{pod} on a node"), async || {
            pods.get(&pod).await.unwrap().spec?.node_name
        })
        .await;
        node.strip_prefix(&self.node_name(situation, "")).unwrap().to_owned()
    }

    /// Why the pod has no node, once the scheduler says a reason that has `words` in it.
    async fn waits_because(&self, situation: &str, name: &str, words: &str) {
        let pods = self.pods();
        let pod = format!("{situation}-{name}");
        eventually(&format!("{pod} waits because of: {words}"), async || {
            let status = pods.get(&pod).await.unwrap().status?;
            let conditions = status.conditions?.into_iter();
            let mut refused = conditions.filter(|one| one.type_ == "PodScheduled");
            refused.any(|one| one.message.unwrap_or_default().contains(words)).then_some(())
        })
        .await;
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.world.client.clone(), &self.world.namespace)
    }
}
