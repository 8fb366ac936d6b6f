//! Somebody with Helm, kubectl and OpenAI's client before an empty cluster.

use std::fmt::Write as _;
use std::process::Stdio;

use flexinfer_crds::Model;
use flexinfer_e2e::{Cluster, Images, Kubelet, Node, Printed, images};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{self, Pod, Service};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use tokio::process::Command;

use crate::controller::FakeHub;
use crate::crds::checkout;
use crate::owned::Owned;
use crate::shared::{eventually, start};

const NAMESPACE: &str = "models";

/// The simulator by another name, as if there were a newer one.
pub(crate) const NEXT_IMAGE: &str = "flexinfer/gateway:next";

pub(crate) struct Person {
    kubelet: Kubelet,
    cluster: Cluster,
    client: Client,
    /// Where weights come from.
    hub: FakeHub,
}

impl Person {
    pub(crate) async fn with_an_empty_cluster() -> Self {
        let cluster = start().await;
        let images = Images::of_this_workspace().alias(NEXT_IMAGE, images::GATEWAY);
        let nodes = ["first", "second"].map(Node::new).into();
        let kubelet = Kubelet::start(&cluster, nodes, images).await.unwrap();
        let client = cluster.client().unwrap();
        Self { cluster, kubelet, client, hub: FakeHub::start().await }
    }

    pub(crate) async fn installs_the_chart(&self) {
        let chart = checkout().join("chart");
        let settings = [
            format!("proxy.image={}", images::GATEWAY),
            format!("controller.image={}", images::CONTROLLER),
            format!("controller.env.HF_ENDPOINT={}", self.hub.url()),
            format!("node.image={}", images::NODE),
            // A kube-scheduler of its own is a story of the nodes'.
            "scheduler.enabled=true,scheduler.kubeScheduler.enabled=false".to_owned(),
        ];
        let mut install = vec!["install", "flexinfer", chart.to_str().unwrap()];
        install.extend(["--namespace", NAMESPACE, "--create-namespace", "--wait", "--timeout=3m"]);
        install.extend(settings.iter().flat_map(|setting| ["--set", setting]));
        let installed = self.cluster.helm().run(&install).await.unwrap();
        assert!(installed.success, "{}\n{}", installed.stderr, self.logs());
        assert!(installed.stdout.contains("kubectl apply"), "{}", installed.stdout);
    }

    pub(crate) async fn sees_the_agent_label_the_nodes(&self) {
        let nodes: Api<v1::Node> = Api::all(self.client.clone());
        for name in ["first", "second"] {
            eventually("the agent's label", async || {
                nodes.get(name).await.unwrap().labels().get("flexinfer.ai/cpu.avx512").cloned()
            })
            .await;
        }
    }

    async fn kubectl(&self, arguments: &[&str], input: &str) -> Printed {
        let arguments = [&["--namespace", NAMESPACE], arguments].concat();
        let printed = self.cluster.kubectl().run_with_input(&arguments, input).await.unwrap();
        assert!(printed.success, "{arguments:?}: {}\n{}", printed.stderr, self.logs());
        printed
    }

    pub(crate) async fn applies(&self, manifest: &str) {
        self.kubectl(&["apply", "--filename", "-"], manifest).await;
    }

    /// What is said to a Model that is not stored.
    pub(crate) async fn is_refused(&self, manifest: &str) -> String {
        let apply = ["--namespace", NAMESPACE, "apply", "--filename", "-"];
        let printed = self.cluster.kubectl().run_with_input(&apply, manifest).await.unwrap();
        assert!(!printed.success, "it was taken: {}\n{}", printed.stdout, self.logs());
        printed.stderr
    }

    async fn phase(&self, model: &str) -> String {
        self.kubectl(&["get", "model", model, "--output=jsonpath={.status.phase}"], "").await.stdout
    }

    /// Waits until a model is in a phase, as `kubectl get` shows it.
    pub(crate) async fn sees(&self, model: &str, phase: &str) {
        eventually(&format!("{model} in phase {phase}\n{}", self.logs()), async || {
            (self.phase(model).await == phase).then_some(())
        })
        .await;
        let table = self.kubectl(&["get", "models"], "").await.stdout;
        assert!(table.contains("PHASE"), "{table}");
    }

    /// Each phase on its way to the last, once.
    pub(crate) async fn watches_until_ready(&self, model: &str) -> Vec<String> {
        let mut phases: Vec<String> = Vec::new();
        eventually("it is ready", async || {
            let phase = self.phase(model).await;
            if phases.last() != Some(&phase) {
                phases.push(phase.clone());
            }
            (phase == "Ready").then_some(())
        })
        .await;
        phases
    }

    /// What a model answers through the gateway's Service.
    pub(crate) async fn asks(&self, model: &str) -> String {
        let services: Api<Service> = Api::namespaced(self.client.clone(), NAMESPACE);
        let service = services.get("flexinfer-proxy").await.unwrap().spec.unwrap();
        let address = format!("{}:8080", service.cluster_ip.unwrap());
        let python = std::env::var_os("FLEXINFER_PYTHON").unwrap_or_else(|| "python3".into());
        let script = checkout().join("e2e/tests/suite/journey/ask.py");
        let mut command = Command::new(python);
        command.arg(script).args([&address, model, "Hello!"]).stdin(Stdio::null());
        let output = command.kill_on_drop(true).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\n{}", self.logs());
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) async fn pods_of(&self, model: &str) -> Vec<Pod> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), NAMESPACE);
        let of_model = ListParams::default().labels(&format!("flexinfer.ai/model={model}"));
        pods.list(&of_model).await.unwrap().items
    }

    pub(crate) async fn sees_no_pods_of(&self, model: &str) {
        eventually("no pods", async || self.pods_of(model).await.is_empty().then_some(())).await;
    }

    pub(crate) async fn changes_the_image_of(&self, model: &str, image: &str) {
        let patch = format!(r#"{{"spec":{{"image":"{image}"}}}}"#);
        self.kubectl(&["patch", "model", model, "--type=merge", "--patch", &patch], "").await;
    }

    /// Waits until the change is rolled out: whoever answers from now on has the image.
    pub(crate) async fn sees_no_pods_without(&self, image: &str, model: &str) {
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), NAMESPACE);
        let has = |spec: Option<&v1::PodSpec>| {
            let mut containers = spec.into_iter().flat_map(|spec| &spec.containers);
            containers.any(|engine| engine.image.as_deref() == Some(image))
        };
        eventually("the change is rolled out", async || {
            let deployment = deployments.get(model).await.unwrap();
            let seen = deployment.status.and_then(|status| status.observed_generation);
            let changed = has(deployment.spec.template.spec.as_ref());
            let followed = changed && seen == deployment.metadata.generation;
            let pods = self.pods_of(model).await;
            (followed && pods.iter().all(|pod| has(pod.spec.as_ref()))).then_some(())
        })
        .await;
    }

    pub(crate) async fn looks_what_belongs_to(&self, model: &str) -> Owned {
        Owned::by(self.cluster.kubectl(), NAMESPACE, model).await
    }

    pub(crate) async fn deletes(&self, model: &str) {
        self.kubectl(&["delete", "model", model, "--wait", "--timeout=60s"], "").await;
        let models: Api<Model> = Api::namespaced(self.client.clone(), NAMESPACE);
        assert!(models.get_opt(model).await.unwrap().is_none(), "{model} is still there");
    }

    /// The definitions stay, and with them what others ask for; everything else goes.
    pub(crate) async fn uninstalls_the_chart(&self) {
        let uninstall = ["uninstall", "flexinfer", "--namespace", NAMESPACE, "--wait"];
        let gone = self.cluster.helm().run(&uninstall).await.unwrap();
        assert!(gone.success, "{}", gone.stderr);
        let ours = "--selector=app.kubernetes.io/name=flexinfer";
        let kinds = "deployments,daemonsets,services,serviceaccounts,roles,rolebindings,clusterroles,clusterrolebindings";
        let left = self.kubectl(&["get", kinds, ours, "--output=name"], "").await.stdout;
        assert_eq!(left, "", "left behind");
        self.kubectl(&["get", "crd", "models.inference.flexinfer.ai"], "").await;
    }

    /// What the programs wrote so far, for a test that fails.
    fn logs(&self) -> String {
        let mut text = String::new();
        for entry in std::fs::read_dir(self.kubelet.logs()).unwrap().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "log") {
                let log = std::fs::read_to_string(&path).unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                let last = lines[lines.len().saturating_sub(20)..].join("\n");
                let _ = writeln!(text, "--- {}\n{last}", path.display());
            }
        }
        text
    }
}
