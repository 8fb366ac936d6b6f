//! A namespace with nodes, a controller that looks after it, and a gateway played by the test.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicI64, Ordering};

use flexinfer_crds::Model;
use flexinfer_crds::model::{ModelStatus, Phase};
use flexinfer_e2e::{Images, Kubelet, Node, images};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::crds::{Models, model};
use crate::rights::Account;
use crate::shared::{World, eventually};

/// An image whose program fails at once.
pub(crate) const FAILING_IMAGE: &str = "test/fails:1";

/// A quantizer whose outcome is what it was given.
const QUANTIZER: &str = "quantizer:test";
const QUANTIZE: &str =
    "mkdir -p \"$QUANTIZE_OUTPUT_DIR\" && cp -r \"$QUANTIZE_SOURCE/.\" \"$QUANTIZE_OUTPUT_DIR\"";

/// What a test of the controller has before it.
pub(crate) struct Desk {
    pub(crate) models: Models,
    pub(crate) kubelet: Kubelet,
    /// By which a controller has the chart's rights.
    kubeconfig: PathBuf,
    controller: Option<Child>,
    /// The gateway's clock, which only ever moves on.
    ticks: AtomicI64,
}

/// The spec of a simulated model that is ready after a second, with `more` in it.
pub(crate) fn simulated(more: &Value) -> Value {
    let mut spec = json!({ "backend": "simulator", "config": { "args": ["--load-time=1s"] } });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    spec
}

impl Desk {
    /// With one node that has a GPU, and a controller at work.
    pub(crate) async fn new() -> Self {
        let mut desk = Self::without_controller().await;
        desk.start_controller(&[]);
        desk
    }

    pub(crate) async fn without_controller() -> Self {
        Self::of(World::new().await).await
    }

    /// Without a controller, in a namespace of whichever cluster.
    pub(crate) async fn of(world: World) -> Self {
        Self::on_nodes(world, 1).await
    }

    /// The same with several nodes, each of which has a GPU.
    pub(crate) async fn on_nodes(world: World, count: usize) -> Self {
        let models = Models::of(world).await;
        let node = |number: usize| {
            let name = match number {
                0 => models.world.namespace.clone(),
                number => format!("{}-{number}", models.world.namespace),
            };
            Node::new(&name)
                .label("test", &models.world.namespace)
                .label("flexinfer.ai/gpu.vendor", "NVIDIA")
                .resource("nvidia.com/gpu", "1")
        };
        let nodes = (0..count).map(node).collect();
        let fails = ["sh", "-c", "echo out of luck >&2; exit 3", "sh"];
        let all = Images::of_this_workspace()
            .with(FAILING_IMAGE, fails)
            .with(QUANTIZER, ["sh", "-c", QUANTIZE]);
        let kubelet = Kubelet::start(&models.world.cluster, nodes, all).await.unwrap();
        let kubeconfig = models.world.kubeconfig_of(Account::Controller).await;
        Self { models, kubelet, kubeconfig, controller: None, ticks: AtomicI64::new(1) }
    }

    pub(crate) fn world(&self) -> &World {
        &self.models.world
    }

    /// Starts a controller with these arguments beside the usual ones.
    pub(crate) fn start_controller(&mut self, more: &[&str]) {
        self.controller = Some(self.controller(more));
    }

    /// The same, reaching the API server by another configuration.
    pub(crate) fn start_controller_by(&mut self, kubeconfig: &Path, more: &[&str]) {
        self.controller = Some(self.controller_by(kubeconfig, more));
    }

    /// Starts a controller whose own programs are in `image`, with these arguments beside the usual ones.
    pub(crate) fn start_controller_of(&mut self, image: &str, more: &[&str]) {
        let log = self.log_file();
        let mut command = command(&self.world().namespace, &self.kubeconfig, &log, more);
        self.controller = Some(command.env("FLEXINFER_NODE_IMAGE", image).spawn().unwrap());
    }

    /// A further controller.
    pub(crate) fn controller(&self, more: &[&str]) -> Child {
        self.controller_by(&self.kubeconfig, more)
    }

    /// The same by another configuration.
    pub(crate) fn controller_by(&self, kubeconfig: &Path, more: &[&str]) -> Child {
        controller(&self.world().namespace, kubeconfig, &self.log_file(), more)
    }

    fn log_file(&self) -> PathBuf {
        self.kubelet.logs().join("controller.log")
    }

    /// Kills the controller as a machine that loses power does.
    pub(crate) async fn kill_controller(&mut self) {
        if let Some(mut controller) = self.controller.take() {
            controller.kill().await.unwrap();
        }
    }

    /// What the controllers wrote into their log so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// Applies a Model whose pods run on this test's node.
    pub(crate) async fn apply(&self, name: &str, spec: &Value) {
        let mut spec = spec.clone();
        spec["nodeSelector"] = json!({ "test": self.world().namespace });
        self.models.apply(&model(name, &spec)).await;
    }

    pub(crate) fn api(&self) -> Api<Model> {
        Api::namespaced(self.world().client.clone(), &self.world().namespace)
    }

    pub(crate) fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.world().client.clone(), &self.world().namespace)
    }

    pub(crate) async fn replicas(&self, name: &str) -> Option<i32> {
        self.deployments().get_opt(name).await.unwrap()?.spec.replicas
    }

    pub(crate) async fn pods(&self, model: &str) -> Vec<Pod> {
        let pods: Api<Pod> = Api::namespaced(self.world().client.clone(), &self.world().namespace);
        let of_model = ListParams::default().labels(&format!("flexinfer.ai/model={model}"));
        pods.list(&of_model).await.unwrap().items
    }

    /// Reports as a gateway would.
    pub(crate) async fn traffic(&self, model: &str, in_flight: i32, waiting: i32) {
        let tick = self.ticks.fetch_add(1, Ordering::Relaxed);
        let renewed = k8s_openapi::jiff::Timestamp::from_second(tick).unwrap();
        let report = json!({
            "apiVersion": "inference.flexinfer.ai/v1alpha2",
            "kind": "Model",
            "metadata": { "name": model },
            "status": { "traffic": [{
                "gateway": "test",
                "inFlight": in_flight,
                "waiting": waiting,
                "peak": in_flight + waiting,
                "renewTime": renewed.to_string().replace('Z', ".000000Z"),
            }] },
        });
        let parameters = PatchParams::apply("test-gateway").force();
        self.api().patch_status(model, &parameters, &Patch::Apply(report)).await.unwrap();
    }

    /// Takes the reports back, as a gateway that ends does.
    pub(crate) async fn no_traffic(&self, model: &str) {
        let report = json!({
            "apiVersion": "inference.flexinfer.ai/v1alpha2",
            "kind": "Model",
            "metadata": { "name": model },
            "status": {},
        });
        let parameters = PatchParams::apply("test-gateway").force();
        self.api().patch_status(model, &parameters, &Patch::Apply(report)).await.unwrap();
    }

    /// The status, once it is as awaited.
    pub(crate) async fn until(
        &self,
        awaited: &str,
        model: &str,
        there: impl Fn(&ModelStatus) -> bool,
    ) -> ModelStatus {
        let mut last = None;
        let found = eventually_or(awaited, async || {
            last = self.api().get_opt(model).await.unwrap().and_then(|model| model.status);
            last.clone().filter(|status| there(status))
        });
        match found.await {
            Some(status) => status,
            None => panic!("{model} is not {awaited}: {last:#?}\n{}", self.log()),
        }
    }

    pub(crate) async fn until_phase(&self, model: &str, phase: Phase) -> ModelStatus {
        let is = |status: &ModelStatus| status.phase == Some(phase);
        self.until(&format!("in phase {phase}"), model, is).await
    }

    /// The reasons of the events about a Model, oldest first.
    pub(crate) async fn events(&self, model: &str) -> Vec<String> {
        self.of_events(model, "reason").await
    }

    /// What the events about a Model say, oldest first.
    pub(crate) async fn told(&self, model: &str) -> Vec<String> {
        self.of_events(model, "message").await
    }

    async fn of_events(&self, model: &str, field: &str) -> Vec<String> {
        let fields =
            format!("--field-selector=involvedObject.kind=Model,involvedObject.name={model}");
        let arguments = ["get", "events", &fields, "--sort-by=.metadata.creationTimestamp"];
        let columns = &format!("--output=custom-columns=:.{field}");
        let printed = self.models.succeed(&[&arguments[..], &[columns]].concat(), "").await;
        printed
            .stdout
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

/// Starts a controller of a namespace, which ends with the answer.
pub(crate) fn controller(namespace: &str, kubeconfig: &Path, log: &Path, more: &[&str]) -> Child {
    command(namespace, kubeconfig, log, more).spawn().unwrap()
}

fn command(namespace: &str, kubeconfig: &Path, log: &Path, more: &[&str]) -> Command {
    let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
    let mut command = Command::new(beside("flexinfer-controller"));
    command
        .args(["run", "--metrics-bind-address=0", "--health-probe-bind-address=0"])
        .args(["--namespace", namespace])
        .args(more)
        .env("KUBECONFIG", kubeconfig)
        // Being asked is tested with the chart, which brings what that needs.
        .env("ENABLE_WEBHOOKS", "false")
        .env("FLEXINFER_SIMULATOR_IMAGE", images::SIMULATOR)
        .env("FLEXINFER_NODE_IMAGE", images::NODE)
        .env("FLEXINFER_QUANTIZER_AWQ_IMAGE", QUANTIZER)
        .stdin(Stdio::null())
        .stderr(log)
        .kill_on_drop(true);
    command
}

/// A program of this workspace, which the command that runs these tests has built.
fn beside(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join(name)
}

/// What `look` finds, or nothing in the time that [`eventually`] allows.
async fn eventually_or<T>(awaited: &str, look: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let patience = std::time::Duration::from_secs(100);
    tokio::time::timeout(patience, eventually(awaited, look)).await.ok()
}
