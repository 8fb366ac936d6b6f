//! A cluster with the chart installed, and somebody who uses it.

use std::net::SocketAddr;
use std::path::PathBuf;

use flexinfer_e2e::{Cluster, Helm, Images, Kubelet, Node, images};
use flexinfer_testkit::client::Answer;
use k8s_openapi::api::core::v1::{self, Pod, Service};
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::Value;

use crate::crds::checkout;
use crate::gateway::ask;
use crate::shared::{eventually, start};

pub(super) const NAMESPACE: &str = "models";

const SCHEDULER: &str = "registry.example/kube-scheduler:v1";

/// `images` with the real kube-scheduler among them.
pub(super) fn with_scheduler(images: Images) -> Images {
    let folder = PathBuf::from(std::env::var_os("KUBEBUILDER_ASSETS").unwrap());
    images.with(SCHEDULER, [folder.join("kube-scheduler").display().to_string().as_str()])
}

/// One of this workspace's programs, by its path.
pub(super) fn program(name: &str) -> String {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join(name).display().to_string()
}

/// Values by which a kube-scheduler that asks the extender places what needs GPUs.
pub(super) fn scheduled() -> [String; 2] {
    ["scheduler.enabled=true".to_owned(), format!("scheduler.kubeScheduler.image={SCHEDULER}")]
}

/// FlexInfer as Helm installs it.
pub(super) struct Installed {
    pub(super) kubelet: Kubelet,
    pub(super) client: Client,
    pub(super) cluster: Cluster,
}

impl Installed {
    /// On `nodes`, with these values beside the images of this workspace.
    pub(super) async fn on(nodes: Vec<Node>, images: Images, values: &[String]) -> Self {
        let cluster = start().await;
        let kubelet = Kubelet::start(&cluster, nodes, images).await.unwrap();
        let client = cluster.client().unwrap();
        let installed = Self { kubelet, client, cluster };
        installed.helm(values).await;
        installed
    }

    async fn helm(&self, values: &[String]) {
        let helm: Helm = self.cluster.helm();
        let chart = checkout().join("chart");
        let ours = [
            ("proxy", images::GATEWAY),
            ("controller", images::CONTROLLER),
            ("node", images::NODE),
        ];
        let ours = ours.map(|(component, image)| format!("{component}.image={image}"));
        let mut line = vec!["install", "flexinfer", chart.to_str().unwrap()];
        line.extend(["--namespace", NAMESPACE, "--create-namespace", "--wait", "--timeout=5m"]);
        line.extend(ours.iter().chain(values).flat_map(|value| ["--set", value]));
        let printed = helm.run(&line).await.unwrap();
        assert!(printed.success, "{}\n{}", printed.stderr, self.said(""));
    }

    /// What kubectl prints in the models' namespace.
    pub(super) async fn kubectl(&self, line: &[&str], input: &str) -> String {
        let line = [&["--namespace", NAMESPACE], line].concat();
        let printed = self.cluster.kubectl().run_with_input(&line, input).await.unwrap();
        assert!(printed.success, "{line:?}: {}\n{}", printed.stderr, self.said(""));
        printed.stdout
    }

    pub(super) async fn apply(&self, object: &Value) {
        self.kubectl(&["apply", "--filename", "-"], &object.to_string()).await;
    }

    pub(super) async fn patch(&self, model: &str, patch: &Value) {
        let patch = patch.to_string();
        self.kubectl(&["patch", "model", model, "--type=merge", "--patch", &patch], "").await;
    }

    /// A part of a Model, once it is as awaited.
    pub(super) async fn until(
        &self,
        awaited: &str,
        model: &str,
        there: impl Fn(&Value) -> bool,
    ) -> Value {
        eventually(awaited, async || {
            let text = self.kubectl(&["get", "model", model, "--output=json"], "").await;
            Some(serde_json::from_str::<Value>(&text).unwrap()).filter(&there)
        })
        .await
    }

    /// The gateway, by its Service.
    pub(super) async fn gateway(&self) -> SocketAddr {
        let services: Api<Service> = Api::namespaced(self.client.clone(), NAMESPACE);
        let service = services.get("flexinfer-proxy").await.unwrap().spec.unwrap();
        format!("{}:8080", service.cluster_ip.unwrap()).parse().unwrap()
    }

    /// What a model answers through the gateway.
    pub(super) async fn asks(&self, model: &str) -> Answer {
        let answer = ask(self.gateway().await, model).await;
        assert_eq!(answer.status(), 200, "{}\n{}", answer.text(), self.said(""));
        answer
    }

    pub(super) async fn pods(&self, labels: &str) -> Vec<Pod> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        pods.list(&ListParams::default().labels(labels)).await.unwrap().items
    }

    /// The engines of a model that take requests, by their nodes.
    pub(super) async fn serving(&self, model: &str) -> Vec<(String, Pod)> {
        let pods = self.pods(&format!("flexinfer.ai/model={model}")).await.into_iter();
        let ready = pods.filter(|pod| {
            let status = pod.status.as_ref();
            let conditions = status.and_then(|status| status.conditions.clone());
            let mut ready = conditions.into_iter().flatten().filter(|one| one.type_ == "Ready");
            pod.metadata.deletion_timestamp.is_none() && ready.any(|one| one.status == "True")
        });
        ready.filter_map(|pod| Some((pod.spec.as_ref()?.node_name.clone()?, pod))).collect()
    }

    pub(super) async fn node(&self, name: &str) -> v1::Node {
        let nodes: Api<v1::Node> = Api::all(self.client.clone());
        nodes.get(name).await.unwrap()
    }

    /// What the containers whose names hold `words` have printed, or all for a test that fails.
    pub(super) fn said(&self, words: &str) -> String {
        let mut files: Vec<PathBuf> = std::fs::read_dir(self.kubelet.logs())
            .unwrap()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
            .filter(|path| path.to_string_lossy().contains(words))
            .collect();
        files.sort();
        let parts = files.iter().map(|path| {
            let log = std::fs::read_to_string(path).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(20)..].join("\n");
            format!("--- {}\n{last}\n", path.display())
        });
        parts.collect()
    }
}

/// The address of a pod.
pub(super) fn address(pod: &Pod) -> std::net::IpAddr {
    let status = pod.status.as_ref().unwrap();
    status.pod_ip.as_ref().unwrap().parse().unwrap()
}
