//! A node of the test's own, and pods that run on it.

use flexinfer_e2e::{Images, Kubelet, Node};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::shared::{World, eventually};

/// A cluster's namespace with a node of its own, which only this test's pods select.
pub(crate) struct Machine {
    pub(crate) world: World,
    pub(crate) kubelet: Kubelet,
}

impl Machine {
    pub(crate) async fn new() -> Self {
        let world = World::new().await;
        let node = Node::new(&world.namespace)
            .label("test", &world.namespace)
            .resource("nvidia.com/gpu", "1");
        let images = Images::of_this_workspace().with("shell", ["sh", "-c"]);
        let kubelet = Kubelet::start(&world.cluster, vec![node], images).await.unwrap();
        Self { world, kubelet }
    }

    /// A pod's spec with what every test needs, and `more`.
    pub(crate) fn spec(&self, more: Value) -> Value {
        let mut spec = json!({
            "nodeSelector": { "test": self.world.namespace },
            "terminationGracePeriodSeconds": 20,
        });
        let Value::Object(more) = more else { panic!("not an object: {more}") };
        spec.as_object_mut().unwrap().extend(more);
        spec
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.world.client.clone(), &self.world.namespace)
    }

    pub(crate) async fn run(&self, name: &str, spec: Value) {
        let pod = json!({ "metadata": { "name": name }, "spec": self.spec(spec) });
        let pod = serde_json::from_value(pod).unwrap();
        self.pods().create(&PostParams::default(), &pod).await.unwrap();
    }

    /// A container's status, once it is as awaited.
    pub(crate) async fn until(
        &self,
        awaited: &str,
        pod: &str,
        there: impl Fn(&Pod, &ContainerStatus) -> bool,
    ) -> ContainerStatus {
        eventually(awaited, async || {
            let pod = self.pods().get(pod).await.unwrap();
            let mut containers = pod.status.as_ref()?.container_statuses.clone()?;
            let container = containers.pop()?;
            there(&pod, &container).then_some(container)
        })
        .await
    }

    /// What a container has printed so far.
    pub(crate) fn output(&self, pod: &str, container: &str) -> String {
        let log = format!("{}_{pod}_{container}.log", self.world.namespace);
        std::fs::read_to_string(self.kubelet.logs().join(log)).unwrap_or_default()
    }
}

pub(crate) fn shell(name: &str, script: &str) -> Value {
    json!({ "name": name, "image": "shell", "args": [script] })
}

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}
