//! A model that moves from node to node: with its weights, and away from a machine that is taken.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use flexinfer_e2e::{Images, Node};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::cloud::Cloud;
use super::installed::{Installed, NAMESPACE, address};
use crate::crds::model;
use crate::gateway::{ask_for_a_stream, get};
use crate::shared::eventually;

pub(super) const NODES: [&str; 2] = ["first", "second"];

/// Large enough to be worth a question to another node.
const LENGTH: usize = 9 << 20;

/// The agents ask `cloud` whether their machines are taken.
pub(super) async fn installed_in(cloud: &Cloud) -> Installed {
    installed(&[
        format!("agent.env.FLEXINFER_METADATA_URL=http://{}", cloud.address),
        "agent.env.FLEXINFER_SPOT_CLOUD=aws".to_owned(),
        "agent.env.FLEXINFER_SPOT_INTERVAL=1s".to_owned(),
    ])
    .await
}

async fn installed(values: &[String]) -> Installed {
    let node = |name| {
        Node::new(name).label("flexinfer.ai/gpu.vendor", "NVIDIA").resource("nvidia.com/gpu", "1")
    };
    Installed::on(NODES.map(node).into(), Images::of_this_workspace(), values).await
}

impl Installed {
    /// A claim called `weights`, of this access mode, with a model in its folder `llama`, as somebody else has put it there.
    pub(super) async fn has_weights(&self, mode: &str) {
        self.apply(&json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": { "name": "weights" },
            "spec": {
                "accessModes": [mode],
                "resources": { "requests": { "storage": "1Gi" } },
            },
        }))
        .await;
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), NAMESPACE);
        let volume = eventually("the claim has a volume", async || {
            claims.get("weights").await.unwrap().spec?.volume_name
        })
        .await;
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        let volume = volumes.get(&volume).await.unwrap().spec.unwrap().host_path.unwrap();
        let folder = PathBuf::from(volume.path).join("llama");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("model.bin"), weights()).unwrap();
        std::fs::write(folder.join("config.json"), "{}").unwrap();
    }

    /// What a node's memory has of `writer`.
    fn copy_on(&self, node: &str) -> PathBuf {
        self.kubelet.memory(node).join("flexinfer").join(NAMESPACE).join("writer")
    }

    /// `cloud` takes the machine of this node away, which the node tells from then on.
    pub(super) async fn loses(&self, cloud: &Cloud, node: &str) {
        cloud.takes(self.agent_of(node).await);
        eventually("the node is marked and closed", async || {
            (self.marks_of(node).await == (true, true)).then_some(())
        })
        .await;
    }

    /// Whether a node is marked, and whether it is closed.
    pub(super) async fn marks_of(&self, node: &str) -> (bool, bool) {
        let node = self.node(node).await;
        let marked = node.annotations().get("flexinfer.ai/spot-terminating").cloned();
        let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        let closed = taints.iter().any(|taint| taint.key == "flexinfer.ai/spot-terminating");
        (marked.as_deref() == Some("true"), closed)
    }

    /// The address of the agent of a node.
    pub(super) async fn agent_of(&self, node: &str) -> IpAddr {
        let agents = self.pods("app.kubernetes.io/component=agent").await;
        let on_it =
            |pod: &&Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node);
        address(agents.iter().find(on_it).unwrap())
    }

    /// The engine of `writer`, and its node.
    pub(super) async fn first_engine(&self) -> (String, Pod) {
        eventually("the engine serves", async || self.serving("writer").await.into_iter().next())
            .await
    }

    /// So many engines of `writer` serve on `node`, and the one on the node that goes has ended before that does.
    pub(super) async fn leaves_to(&self, node: &str, engines: usize, doomed: &Pod) {
        eventually("others serve, and the doomed engine has ended", async || {
            let pods = self.pods("flexinfer.ai/model=writer").await;
            let gone = pods.iter().all(|pod| pod.name_any() != doomed.name_any());
            let serving = self.serving("writer").await;
            (gone && serving.len() == engines && serving.iter().all(|(on, _)| on == node))
                .then_some(())
        })
        .await;
    }

    /// What the flash loader last said about where the weights came from, in bytes from other nodes.
    fn told_from_peers(&self) -> Vec<usize> {
        let said = self.said("flash-loader");
        let told = said.lines().filter_map(|line| line.split_once("from_peers")?.1.get(1..));
        let number = |text: &str| {
            let digits: String = text
                .chars()
                .skip_while(|letter| !letter.is_ascii_digit())
                .take_while(char::is_ascii_digit)
                .collect();
            digits.parse().unwrap()
        };
        told.map(number).collect()
    }
}

fn weights() -> Vec<u8> {
    let mut state = 1_u32;
    let next = std::iter::repeat_with(move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    });
    next.take(LENGTH).collect()
}

fn on(node: &str) -> Value {
    json!({ "spec": { "nodeSelector": { "kubernetes.io/hostname": node } } })
}

#[tokio::test]
async fn weights_go_from_a_claim_to_memory_from_there_to_another_node_and_with_their_model() {
    let installed = installed(&["agent.probeInterval=1s".to_owned()]).await;
    installed.has_weights("ReadWriteMany").await;
    let mut writer = model(
        "writer",
        &json!({
            "backend": "simulator",
            "source": "pvc://weights/llama",
            "gpu": { "count": 1, "shared": "desk" },
            "cache": { "flashLoader": { "enabled": true } },
        }),
    );
    writer["spec"]["nodeSelector"] = on("first")["spec"]["nodeSelector"].clone();
    installed.apply(&writer).await;

    installed.asks("writer").await;
    let copy = installed.copy_on("first").join("llama/model.bin");
    assert!(std::fs::read(&copy).unwrap() == weights(), "another copy than the claim's");
    assert_eq!(installed.told_from_peers(), [0]);
    assert!(!installed.copy_on("second").exists());

    installed.patch("writer", &on("second")).await;
    eventually("it serves on the second node", async || {
        let serving = installed.serving("writer").await;
        serving.iter().any(|(node, _)| node == "second").then_some(())
    })
    .await;
    installed.asks("writer").await;
    let copy = installed.copy_on("second").join("llama/model.bin");
    assert!(std::fs::read(&copy).unwrap() == weights(), "another copy than the claim's");
    let given = installed.told_from_peers().into_iter().max();
    assert_eq!(given, Some(LENGTH + 2), "{}", installed.said("flash-loader"));
    let one = json!(["second"]);
    let there = |model: &Value| model["status"]["cache"]["nodes"] == one;
    installed.until("the copy is gone that it cannot use any more", "writer", there).await;
    assert!(!installed.copy_on("first").exists());

    installed.kubectl(&["delete", "model", "writer", "--wait", "--timeout=90s"], "").await;
    for node in NODES {
        assert!(!installed.copy_on(node).exists(), "a copy is left on {node}");
    }
}

/// Somebody who asks a model for streams all the time, and counts.
pub(super) struct Caller {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    task: JoinHandle<Vec<String>>,
}

impl Caller {
    pub(super) fn start(gateway: SocketAddr, model: &'static str) -> Self {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (stops, counts) = (Arc::clone(&stop), Arc::clone(&answered));
        let task = tokio::spawn(async move {
            let mut lost = Vec::new();
            while !stops.load(Ordering::SeqCst) {
                let answer = ask_for_a_stream(gateway, model).await;
                let whole = answer.complete && answer.text().contains("[DONE]");
                if answer.status() != 200 || !whole {
                    lost.push(format!("{}: {}", answer.status(), answer.text()));
                }
                counts.fetch_add(1, Ordering::SeqCst);
            }
            lost
        });
        Self { stop, answered, task }
    }

    /// Waits for so many answers more.
    pub(super) async fn gets(&self, more: usize) {
        let wanted = self.answered.load(Ordering::SeqCst) + more;
        eventually("answers come", async || {
            (self.answered.load(Ordering::SeqCst) >= wanted).then_some(())
        })
        .await;
    }

    /// What went wrong until now.
    pub(super) async fn leaves(self) -> Vec<String> {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.unwrap()
    }
}

/// Tokens that the engine at `engine` has made so far.
async fn made(engine: SocketAddr) -> f64 {
    let page = get(engine, "/metrics").await.text();
    let counted = page.lines().filter(|line| line.starts_with("vllm:generation_tokens_total"));
    counted.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// A model of so many quick engines.
pub(super) fn writer(replicas: u32) -> Value {
    let spec = json!({
        "backend": "simulator",
        "config": { "args": ["--time-per-token=1ms", "--time-to-first-token=1ms"] },
        "serverless": { "minReplicas": replicas, "maxReplicas": replicas },
    });
    model("writer", &spec)
}

/// A model of one quick engine, which only the first node may run.
pub(super) fn pinned() -> Value {
    let mut pinned = writer(1);
    pinned["spec"]["nodeSelector"] = on("first")["spec"]["nodeSelector"].clone();
    pinned
}

#[tokio::test]
async fn a_spot_notice_moves_traffic_away_before_the_pod_dies() {
    let cloud = Cloud::start().await;
    let installed = installed_in(&cloud).await;
    installed.apply(&writer(2)).await;
    let engines = eventually("an engine serves on each node", async || {
        let serving = installed.serving("writer").await;
        let on = |node: &str| serving.iter().find(|(known, _)| known == node).cloned();
        Some([on("first")?, on("second")?])
    })
    .await;
    let [doomed, staying] = engines.map(|(_, pod)| pod);
    let port = |pod| SocketAddr::new(address(pod), 8000);

    let caller = Caller::start(installed.gateway().await, "writer");
    eventually("both engines are asked", async || {
        let both = made(port(&doomed)).await > 0.0 && made(port(&staying)).await > 0.0;
        both.then_some(())
    })
    .await;

    installed.loses(&cloud, "first").await;
    installed.leaves_to("second", 2, &doomed).await;
    caller.gets(20).await;
    let lost = caller.leaves().await;
    assert!(lost.is_empty(), "{} requests were lost: {lost:?}", lost.len());
}

#[tokio::test]
async fn the_only_engine_of_a_model_is_replaced_before_its_node_is_taken() {
    let cloud = Cloud::start().await;
    let installed = installed_in(&cloud).await;
    // An answer takes three seconds: some run whenever the old engine is told to go.
    let mut slow = writer(1);
    let arguments = ["--load-time=2s", "--time-per-token=10ms", "--answer-tokens=300"];
    slow["spec"]["config"]["args"] = json!(arguments);
    installed.apply(&slow).await;
    let (node, engine) = installed.first_engine().await;
    let gateway = installed.gateway().await;
    let callers: Vec<Caller> = (0..4).map(|_| Caller::start(gateway, "writer")).collect();
    for caller in &callers {
        caller.gets(1).await;
    }
    installed.loses(&cloud, &node).await;
    let other = NODES.into_iter().find(|other| *other != node).unwrap();
    installed.leaves_to(other, 1, &engine).await;
    for caller in callers {
        caller.gets(1).await;
        let lost = caller.leaves().await;
        assert!(lost.is_empty(), "{} were lost: {lost:?}\n{}", lost.len(), installed.said(""));
    }
    let log = installed.said("controller");
    assert!(!log.contains("was refused") && log.contains("another engine is started"), "{log}");
}

#[tokio::test]
async fn an_engine_that_can_be_replaced_nowhere_serves_on_while_its_node_is_taken() {
    let cloud = Cloud::start().await;
    let installed = installed_in(&cloud).await;
    installed.apply(&pinned()).await;
    let (node, engine) = installed.first_engine().await;
    let caller = Caller::start(installed.gateway().await, "writer");
    caller.gets(20).await;
    installed.loses(&cloud, &node).await;
    eventually("another is waited for", async || {
        (installed.pods("flexinfer.ai/model=writer").await.len() == 2).then_some(())
    })
    .await;
    // Nobody waits for an engine that is not there.
    caller.gets(200).await;
    let serving = installed.serving("writer").await;
    assert_eq!(serving.first().map(|(_, pod)| pod.name_any()), Some(engine.name_any()));
    let lost = caller.leaves().await;
    assert!(lost.is_empty(), "{} requests were lost: {lost:?}", lost.len());
    // It is its Model's alone now, and goes with it.
    installed.kubectl(&["delete", "model", "writer", "--wait", "--timeout=90s"], "").await;
    let left = installed.pods("flexinfer.ai/model=writer").await;
    assert!(left.iter().all(|pod| pod.metadata.deletion_timestamp.is_some()), "{left:?}");
}
