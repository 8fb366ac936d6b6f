//! Nodes whose pods are processes of this machine: what a kubelet does, without containers.
//!
//! A node is an object with a lease that is renewed. Each pod that the scheduler binds to it gets a task of
//! its own (`pod`), which looks after its containers (`container`) until the pod ends or is deleted. Pods
//! share this machine's network and files; volumes other than the service account's token are refused.

mod container;
mod environment;
mod images;
mod node;
mod pod;
mod probe;
mod status;

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

/// Nodes and their pods. Dropping it ends every process; the objects stay, as when a machine is lost.
pub struct Kubelet {
    _nodes: JoinSet<()>,
    folder: TempDir,
}

impl Kubelet {
    /// Registers the nodes and looks after their pods. `images` says what each image runs.
    pub async fn start(
        client: &Client,
        nodes: Vec<Node>,
        images: Images,
    ) -> Result<Self, kube::Error> {
        let folder = TempDir::with_prefix("flexinfer-kubelet-");
        let folder = folder.map_err(|error| kube::Error::Service(error.into()))?;
        let images = Arc::new(images);
        let mut tasks = JoinSet::new();
        for node in nodes {
            node::register(client, &node).await?;
            let pods = Pods {
                client: client.clone(),
                images: Arc::clone(&images),
                logs: folder.path().to_path_buf(),
                known: HashMap::new(),
            };
            let client = client.clone();
            tasks.spawn(async move {
                tokio::join!(node::renew(&client, &node.name), pods.follow(&node.name));
            });
        }
        Ok(Self { _nodes: tasks, folder })
    }

    /// Where the containers' output lies: `NAMESPACE_POD_CONTAINER.log`.
    pub fn logs(&self) -> &Path {
        self.folder.path()
    }
}

/// The pods of one node, by their uid: another pod may come under the same name.
struct Pods {
    client: Client,
    images: Arc<Images>,
    logs: PathBuf,
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
        let pods: Api<Pod> = Api::all(self.client.clone());
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
        let life = pod::Life::new(self.client.clone(), &self.images, &self.logs, seen);
        let task = AbortOnDropHandle::new(tokio::spawn(life.live()));
        self.known.insert(uid, Known { changes, _task: task });
    }
}
