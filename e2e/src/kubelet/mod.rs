//! Nodes whose pods are processes of this machine: what a kubelet does, without containers.
//!
//! A node is an object with a lease that is renewed. Each pod that the scheduler binds to it gets a task of
//! its own (`pod`), which gives it a place (`sandbox`: a network namespace, its `volumes`) and looks after its
//! containers (`container`) until it ends or is deleted.

mod asking;
mod container;
mod ending;
mod environment;
mod hosts;
mod images;
mod node;
mod pod;
mod pretence;
mod probe;
mod sandbox;
mod status;
mod volumes;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch_objects};
use kube::{Api, Client, ResourceExt};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

pub use images::Images;
pub use node::Node;
pub use pretence::Pretence;

use crate::Cluster;
use crate::network::{self, NetworkError};
use environment::Variables;

/// The folder with the nodes' memory.
const MEMORY: &str = "memory";

/// What every pod of these nodes has around it.
struct Machine {
    client: Client,
    /// The cluster, as a pod reaches it.
    api_server_port: u16,
    images: Images,
    logs: PathBuf,
    /// A folder for each pod that is there.
    pods: PathBuf,
    /// A folder for each node, in place of its `/dev/shm`: several nodes are one machine here.
    memory: PathBuf,
    /// What is mounted beside `/`, before any pod's volumes were.
    mounted: Vec<PathBuf>,
    /// What turns into a container's program.
    entrance: PathBuf,
}

impl Machine {
    /// What a kubelet tells every container of the cluster it is in.
    fn cluster_variables(&self) -> Variables {
        let told = [
            ("KUBERNETES_SERVICE_HOST", network::MACHINE.to_string()),
            ("KUBERNETES_SERVICE_PORT", self.api_server_port.to_string()),
            ("KUBERNETES_SERVICE_PORT_HTTPS", self.api_server_port.to_string()),
        ];
        told.map(|(name, value)| (name.to_owned(), value)).into()
    }
}

/// Why there are no nodes.
#[derive(Debug, thiserror::Error)]
pub enum KubeletError {
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error("cannot register a node")]
    Register(#[from] kube::Error),
    #[error("cannot {act}")]
    Prepare { act: &'static str, source: std::io::Error },
    #[error(
        "flexinfer-e2e-container is not beside the tests: `cargo test -p flexinfer-e2e` builds it"
    )]
    NoEntrance,
}

/// Nodes and their pods. Dropping it ends every process; the objects stay, as when a machine is lost.
pub struct Kubelet {
    _nodes: JoinSet<()>,
    folder: TempDir,
}

impl Kubelet {
    /// Registers the nodes and looks after their pods. `images` says what each image runs.
    pub async fn start(
        cluster: &Cluster,
        nodes: Vec<Node>,
        images: Images,
    ) -> Result<Self, KubeletError> {
        network::ensure_bridge()?;
        let prepare = |act| move |source| KubeletError::Prepare { act, source };
        let folder = TempDir::with_prefix("flexinfer-kubelet-")
            .map_err(prepare("create a folder for the kubelet"))?;
        let client = cluster.client()?;
        let machine = Machine {
            client: client.clone(),
            api_server_port: cluster.port(),
            images,
            logs: folder.path().to_path_buf(),
            pods: folder.path().join("pods"),
            memory: folder.path().join(MEMORY),
            mounted: network::machine_mounts().map_err(prepare("read what is mounted"))?,
            entrance: sandbox::entrance().ok_or(KubeletError::NoEntrance)?,
        };
        let machine = Arc::new(machine);
        let mut tasks = JoinSet::new();
        for node in nodes {
            node::register(&client, &node).await?;
            let pods = Pods { machine: Arc::clone(&machine), known: HashMap::new() };
            let client = client.clone();
            tasks.spawn(async move {
                tokio::join!(node::renew(&client, &node.name), pods.follow(&node.name));
            });
        }
        Ok(Self { _nodes: tasks, folder })
    }

    /// What the pods of a node find where they mount its `/dev/shm`, or a folder below that.
    pub fn memory(&self, node: &str) -> PathBuf {
        self.folder.path().join(MEMORY).join(node)
    }

    /// Where the containers' output lies: `NAMESPACE_POD_CONTAINER.log`.
    pub fn logs(&self) -> &Path {
        self.folder.path()
    }
}

/// The pods of one node, by their uid: another pod may come under the same name.
struct Pods {
    machine: Arc<Machine>,
    known: HashMap<String, Known>,
}

struct Known {
    changes: watch::Sender<Pod>,
    /// Ends the pod's processes with it.
    _task: AbortOnDropHandle<()>,
}

impl Pods {
    async fn follow(mut self, node: &str) {
        let ours = watcher::Config::default().fields(&format!("spec.nodeName={node}"));
        let pods: Api<Pod> = Api::all(self.machine.client.clone());
        let mut events = watch_objects(pods, ours).default_backoff().boxed();
        let mut listed = Vec::new();
        loop {
            match events.try_next().await {
                Ok(Some(Event::Init)) => listed.clear(),
                Ok(Some(Event::InitApply(pod))) => {
                    listed.extend(pod.uid());
                    self.see(pod);
                }
                Ok(Some(Event::InitDone)) => self.known.retain(|uid, _| listed.contains(uid)),
                Ok(Some(Event::Apply(pod))) => self.see(pod),
                Ok(Some(Event::Delete(pod))) => {
                    self.known.remove(&pod.uid().unwrap_or_default());
                }
                Ok(None) => return,
                // The API server is away or forgot where we were; the watch goes on by itself.
                Err(_) => {}
            }
        }
    }

    fn see(&mut self, pod: Pod) {
        let uid = pod.uid().unwrap_or_default();
        if let Some(known) = self.known.get(&uid) {
            known.changes.send_replace(pod);
            return;
        }
        let (changes, seen) = watch::channel(pod);
        let life = pod::Life::new(&self.machine, seen);
        let task = AbortOnDropHandle::new(tokio::spawn(life.live()));
        self.known.insert(uid, Known { changes, _task: task });
    }
}
