//! Nodes whose pods only say that they run: for tests of thousands, where a process each would be too much.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{self, ContainerStatus, Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio_util::task::AbortOnDropHandle;

use super::node::{self, Node};
use super::status::{self, Containers, Initialisation};
use crate::Cluster;

/// Requests under way at once.
const AT_ONCE: usize = 32;

/// Nodes that never start anything. A pod is ready as soon as it is bound, at an address where nobody listens;
/// one that shall end, as a Job's, has succeeded at once.
pub struct Pretence {
    _task: AbortOnDropHandle<()>,
}

impl Pretence {
    /// Registers the nodes and answers for their pods. The nodes stay when it is dropped.
    pub async fn start(cluster: &Cluster, nodes: Vec<Node>) -> Result<Self, kube::Error> {
        let client = cluster.client()?;
        let registered = stream::iter(&nodes).map(Ok::<_, kube::Error>);
        registered
            .try_for_each_concurrent(AT_ONCE, async |node| node::register(&client, node).await)
            .await?;
        let names: HashSet<String> = nodes.into_iter().map(|node| node.name).collect();
        let task = tokio::spawn(async move {
            tokio::join!(renew(&client, &names), answer(&client, &names));
        });
        Ok(Self { _task: AbortOnDropHandle::new(task) })
    }
}

async fn renew(client: &Client, names: &HashSet<String>) {
    loop {
        tokio::time::sleep(node::RENEWAL).await;
        let renewals = stream::iter(names);
        renewals
            .for_each_concurrent(AT_ONCE, async |name| drop(node::renew_once(client, name).await))
            .await;
    }
}

async fn answer(client: &Client, names: &HashSet<String>) {
    let pods: Api<Pod> = Api::all(client.clone());
    let seen = watcher(pods, watcher::Config::default()).default_backoff().applied_objects();
    seen.filter_map(async |pod| {
        let pod = pod.ok()?;
        let node = pod.spec.as_ref()?.node_name.as_ref()?;
        names.contains(node).then_some(pod)
    })
    .for_each_concurrent(AT_ONCE, async |pod| {
        let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
        // What fails is done at the pod's next change, or is a pod that has gone.
        if pod.metadata.deletion_timestamp.is_some() {
            drop(pods.delete(&pod.name_any(), &gone(&pod)).await);
        } else if pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Pending")
        {
            let patch = json!({ "metadata": { "uid": pod.uid() }, "status": claimed(&pod) });
            let patch = Patch::Strategic(patch);
            drop(pods.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await);
        }
    })
    .await;
}

fn gone(pod: &Pod) -> DeleteParams {
    DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: Some(Preconditions { uid: pod.uid(), ..Preconditions::default() }),
        ..DeleteParams::default()
    }
}

/// What a kubelet would say of the pod once all went well.
fn claimed(pod: &Pod) -> PodStatus {
    /// In a range of its own, so that nobody real has the address.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = Ipv4Addr::new(10, 100, 0, 1).to_bits();
    let address = Ipv4Addr::from_bits(first + NEXT.fetch_add(1, Ordering::Relaxed));
    let spec = pod.spec.clone().unwrap_or_default();
    let runs_on = spec.restart_policy.as_deref().is_none_or(|policy| policy == "Always");
    let now = Time(Timestamp::now());
    let containers = |containers: &[v1::Container], running: bool| {
        containers.iter().map(|container| claim(container, running, &now)).collect()
    };
    let containers = Containers {
        address: Some(address),
        unready: None,
        initialisation: Initialisation::Done,
        initial: containers(spec.init_containers.as_deref().unwrap_or_default(), false),
        main: containers(&spec.containers, runs_on),
    };
    status::of_pod(containers, None, &now, &now)
}

fn claim(container: &v1::Container, running: bool, now: &Time) -> ContainerStatus {
    let running = running || container.restart_policy.as_deref() == Some("Always");
    let state = if running {
        v1::ContainerState {
            running: Some(v1::ContainerStateRunning { started_at: Some(now.clone()) }),
            ..v1::ContainerState::default()
        }
    } else {
        let end = v1::ContainerStateTerminated {
            reason: Some("Completed".to_owned()),
            started_at: Some(now.clone()),
            finished_at: Some(now.clone()),
            ..v1::ContainerStateTerminated::default()
        };
        v1::ContainerState { terminated: Some(end), ..v1::ContainerState::default() }
    };
    ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        started: Some(running),
        ready: true,
        state: Some(state),
        ..ContainerStatus::default()
    }
}
