//! A namespace with that many Models, a controller and a gateway of their own names, and a second namespace for
//! the same Deployments without us.

use std::sync::Arc;
use std::time::Duration;

use flexinfer_crds::Model;
use flexinfer_crds::model::Phase;
use flexinfer_e2e::{Node, Pretence, Write};
use flexinfer_testkit::{TempDir, tempdir};
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use tokio::process::Child;
use tokio::time::{Instant, sleep};

use super::Size;
use super::figures::Memory;
use super::seen::{Followed, Seen};
use crate::controller::controller;
use crate::crds::{Models, model};
use crate::gateway::{Gateway, start};
use crate::rights::Account;
use crate::shared::World;

/// The chart's accounts of our programs, by which their writes are told from everybody else's.
const ACCOUNTS: [Account; 2] = [Account::Controller, Account::Gateway];

/// How many looks in a row must find nothing new until it is believed that nothing comes any more.
const LOOKS: u32 = 3;

pub(super) struct Crowd {
    size: Size,
    models: Models,
    controller: Child,
    gateway: Gateway,
    folder: TempDir,
    _nodes: Pretence,
}

impl Crowd {
    /// With nodes that each have a GPU, and our programs at work.
    pub(super) async fn start(world: World, size: Size) -> Self {
        let node = |number| {
            Node::new(&format!("node-{number}"))
                .label("flexinfer.ai/gpu.vendor", "NVIDIA")
                .resource("nvidia.com/gpu", "1")
        };
        let nodes = (0..size.nodes).map(node).collect();
        let nodes = Pretence::start(&world.cluster, nodes).await.unwrap();
        let models = Models::of(world).await;
        let folder = tempdir().unwrap();
        let [of_controller, of_gateway] =
            ACCOUNTS.map(|account| models.world.kubeconfig_of(account));
        let (of_controller, of_gateway) = (of_controller.await, of_gateway.await);
        let namespace = models.world.namespace.clone();
        let log = folder.path().join("controller.log");
        let controller = controller(&namespace, &of_controller, &log, &["--leader-elect"]);
        let gateway = start(&models, "one", of_gateway, &[]).await;
        Self { size, models, controller, gateway, folder, _nodes: nodes }
    }

    /// One model of each group is up from the beginning, the others sleep.
    pub(super) async fn apply_models(&self) {
        let one = |number: usize| {
            let first = number < self.size.groups;
            let group = format!("gpu{}", number % self.size.groups);
            let spec = json!({
                "backend": "simulator",
                "gpu": { "vendor": "nvidia", "shared": group },
                "serverless": { "minReplicas": usize::from(first) },
            });
            model(&format!("model-{number}"), &spec)
        };
        let models: Vec<Value> = (0..self.size.models).map(one).collect();
        self.create(&self.models.world.namespace, &models).await;
    }

    async fn create(&self, namespace: &str, objects: &[Value]) {
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
        // kubectl would first ask for the whole schema, and gives a busy API server 32 seconds for it.
        let unchecked = "--validate=false";
        let arguments = ["create", unchecked, "--namespace", namespace, "--filename", "-"];
        let kubectl = self.models.world.cluster.kubectl();
        let printed = kubectl.run_with_input(&arguments, &list.to_string()).await.unwrap();
        assert!(printed.success, "{}", printed.stderr);
    }

    /// Waits until the models that shall be up are ready, and all others are asleep.
    pub(super) async fn models_settle(&self) {
        let models = self.seen::<Model>(&self.models.world.namespace);
        self.until("the Models are settled", async || {
            let in_phase = |phase| {
                models.count(|model| model.status.as_ref().and_then(|at| at.phase) == Some(phase))
            };
            let (up, asleep) = (in_phase(Phase::Ready), in_phase(Phase::Idle));
            up == self.size.groups && up + asleep == self.size.models
        })
        .await;
    }

    fn seen<K: Followed>(&self, namespace: &str) -> Seen<K> {
        Seen::of(&self.models.world.client, namespace)
    }

    /// What our programs wrote so far; who leads has to say so again and again.
    pub(super) fn writes(&self) -> Vec<Write> {
        let users = ACCOUNTS.map(|account| account.user(&self.models.world));
        let ours = |write: &Write| users.contains(&write.user) && write.resource != "leases";
        self.models.world.cluster.writes().unwrap().into_iter().filter(ours).collect()
    }

    /// Waits until several looks in a row find no new write: one program may stand still for a while.
    pub(super) async fn writes_end(&self) {
        let (mut before, mut alike) = (usize::MAX, 0);
        self.until("the writes of the start are over", async || {
            sleep(Duration::from_secs(2)).await;
            let now = self.writes().len();
            alike = if std::mem::replace(&mut before, now) == now { alike + 1 } else { 0 };
            alike == LOOKS
        })
        .await;
    }

    pub(super) fn memory(&self) -> Memory {
        Memory {
            controller: resident(self.controller.id().unwrap()),
            gateway: resident(self.gateway.program.id()),
        }
    }

    /// Creates the same Deployments where nobody looks after them but Kubernetes; how long they take.
    pub(super) async fn plainly_create(&self) -> Duration {
        let ours = self.seen::<Deployment>(&self.models.world.namespace);
        self.until("our Deployments are seen", async || ours.count(|_| true) == self.size.models)
            .await;
        let plain: Vec<Value> = ours.all().iter().map(|ours| bare(ours)).collect();
        let elsewhere = World::of(Arc::clone(&self.models.world.cluster)).await;
        let namespace = elsewhere.namespace;
        let deployments = self.seen::<Deployment>(&namespace);
        let begun = Instant::now();
        self.create(&namespace, &plain).await;
        self.until("the plain Deployments are settled", async || {
            deployments.count(settled) == self.size.models
        })
        .await;
        begun.elapsed()
    }

    /// Waits as long as so many objects may take on a machine that does other things too.
    async fn until(&self, awaited: &str, mut there: impl AsyncFnMut() -> bool) {
        let patience = Duration::from_secs(120) + Duration::from_secs(1) * self.number();
        let pause = Duration::from_millis(200) + Duration::from_millis(1) * self.number();
        let begun = Instant::now();
        while !there().await {
            let log = || std::fs::read_to_string(self.folder.path().join("controller.log"));
            assert!(begun.elapsed() < patience, "it did not come: {awaited}\n{:?}", log());
            sleep(pause).await;
        }
    }

    fn number(&self) -> u32 {
        u32::try_from(self.size.models).unwrap()
    }
}

/// A Deployment as somebody would write it.
fn bare(deployment: &Deployment) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": deployment.name_any(), "labels": deployment.metadata.labels },
        "spec": deployment.spec,
    })
}

fn settled(deployment: &Deployment) -> bool {
    let status = deployment.status.as_ref();
    let seen = status.and_then(|status| status.observed_generation);
    let available = status.and_then(|status| status.available_replicas).unwrap_or(0);
    seen == deployment.metadata.generation && Some(available) == deployment.spec.replicas
}

/// A process's resident memory in KiB.
fn resident(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}
