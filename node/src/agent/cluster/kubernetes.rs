//! The node in a real cluster.

use std::collections::BTreeSet;

use async_trait::async_trait;
use flexinfer_core::backends::Backend;
use flexinfer_core::hardware::marks::Node;
use flexinfer_core::placement::{self, Reservation};
use flexinfer_crds::{Model, keys};
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{self as api, Event, EventSource, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::{ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde_json::Value;

use crate::weights;

use super::{Engine, NodeStore, Pods, StoreError};

/// The name by which the API server knows what the agent wrote.
const FIELD_MANAGER: &str = "flexinfer-agent";

/// One node of a cluster.
pub(in crate::agent) struct Kubernetes {
    client: Client,
    node: String,
}

impl Kubernetes {
    /// By the service account of the pod, or by KUBECONFIG.
    pub(in crate::agent) async fn connect(node: &str) -> Result<Self, StoreError> {
        let client = Client::try_default()
            .await
            .map_err(|error| StoreError::Unconfigured(Box::new(error)))?;
        Ok(Self { client, node: node.to_owned() })
    }

    fn nodes(&self) -> Api<api::Node> {
        Api::all(self.client.clone())
    }

    /// All pods on the node.
    async fn all_pods(&self) -> Result<Vec<Pod>, StoreError> {
        let wanted = ListParams::default().fields(&format!("spec.nodeName={}", self.node));
        let pods = Api::all(self.client.clone()).list(&wanted).await;
        pods.map(|pods| pods.items).map_err(failed("list the node's pods"))
    }

    fn warning(&self, pod: &Pod, reason: &str, message: &str) -> Event {
        let now = Time(Timestamp::now());
        Event {
            metadata: ObjectMeta {
                generate_name: Some(format!("{}.", pod.name_any())),
                namespace: pod.namespace(),
                ..ObjectMeta::default()
            },
            involved_object: pod.object_ref(&()),
            type_: Some("Warning".to_owned()),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            first_timestamp: Some(now.clone()),
            last_timestamp: Some(now),
            count: Some(1),
            source: Some(EventSource {
                component: Some(FIELD_MANAGER.to_owned()),
                host: Some(self.node.clone()),
            }),
            ..Event::default()
        }
    }
}

#[async_trait]
impl NodeStore for Kubernetes {
    async fn read(&self) -> Result<Node, StoreError> {
        self.nodes().get(&self.node).await.map(understood).map_err(failed("read the node"))
    }

    async fn patch(&self, patch: &Value) -> Result<(), StoreError> {
        let parameters =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let patched = self.nodes().patch(&self.node, &parameters, &Patch::Merge(patch)).await;
        patched.map_err(failed("patch the node"))?;
        tracing::info!(%patch, "the node was changed");
        Ok(())
    }

    async fn pods(&self) -> Result<Pods, StoreError> {
        let pods = self.all_pods().await?;
        let reserved = pods.iter().filter_map(Reservation::of);
        let newest_ready = reserved.filter_map(|(_, reservation)| reservation.ready_since).max();
        let engines = pods.iter().filter(|pod| is_ours(pod)).filter_map(engine).collect();
        Ok(Pods { engines, newest_ready })
    }

    async fn hear_of_ends(&self, heard: &(dyn Fn() + Send + Sync)) -> Result<(), StoreError> {
        let of_node = WatchParams::default().fields(&format!("spec.nodeName={}", self.node));
        let pods: Api<Pod> = Api::all(self.client.clone());
        let events = pods.watch(&of_node, "0").await.map_err(failed("watch the node's pods"))?;
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            let ended = match event.map_err(failed("go on with watching the node's pods"))? {
                WatchEvent::Deleted(pod) => Some(pod),
                // One that has ended reserves nothing any more.
                WatchEvent::Modified(pod) => Some(pod).filter(|pod| Reservation::of(pod).is_none()),
                _ => None,
            };
            if ended.is_some_and(|pod| placement::Pod::read(&pod, None).gpus > 0) {
                heard();
            }
        }
        Ok(())
    }

    async fn warn(
        &self,
        reason: &str,
        message: &str,
        told: &mut BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let mut failure = None;
        for pod in self.all_pods().await?.iter().filter(|pod| is_ours(pod)) {
            let id = pod.uid().unwrap_or_default();
            if told.contains(&id) {
                continue;
            }
            let event = self.warning(pod, reason, message);
            let namespace = pod.namespace().unwrap_or_default();
            let events: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
            match events.create(&PostParams::default(), &event).await {
                Ok(_) => _ = told.insert(id),
                Err(error) => failure = failure.or(Some(failed("record an event")(error))),
            }
        }
        failure.map_or(Ok(()), Err)
    }
}

#[async_trait]
impl weights::Cluster for Kubernetes {
    async fn models(&self) -> anyhow::Result<BTreeSet<String>> {
        // Only names: a Model that cannot be read is there all the same.
        let models: Api<Model> = Api::all(self.client.clone());
        let models = models.list_metadata(&ListParams::default()).await?;
        let name = |namespace: Option<String>, name: String| {
            format!("{}/{name}", namespace.unwrap_or_default())
        };
        Ok(models.items.iter().map(|model| name(model.namespace(), model.name_any())).collect())
    }

    async fn in_use(&self) -> anyhow::Result<BTreeSet<String>> {
        let pods = self.all_pods().await?;
        let of_pod = |pod: &Pod| {
            let model = pod.labels().get(keys::MODEL)?;
            Some(format!("{}/{model}", pod.namespace()?))
        };
        Ok(pods.iter().filter_map(of_pod).collect())
    }
}

fn failed(act: &'static str) -> impl Fn(kube::Error) -> StoreError {
    move |error| match error {
        kube::Error::Api(status) if status.code == 409 => StoreError::Conflict,
        error => StoreError::Failed { act, source: Box::new(error) },
    }
}

fn understood(node: api::Node) -> Node {
    let spec = node.spec.unwrap_or_default();
    let status = node.status.unwrap_or_default();
    let taints = spec.taints.unwrap_or_default();
    let allocatable = status.allocatable.unwrap_or_default();
    Node {
        labels: node.metadata.labels.unwrap_or_default(),
        annotations: node.metadata.annotations.unwrap_or_default(),
        taints: taints.iter().filter_map(|taint| serde_json::to_value(taint).ok()).collect(),
        resource_version: node.metadata.resource_version,
        allocatable: allocatable
            .into_iter()
            .map(|(resource, quantity)| (resource, quantity.0))
            .collect(),
        boot: status.node_info.map(|machine| machine.boot_id),
        provider: spec.provider_id,
    }
}

fn is_ours(pod: &Pod) -> bool {
    pod.labels().get(keys::MANAGED_BY).is_some_and(|manager| manager == keys::MANAGED_BY_FLEXINFER)
}

/// The engine of a pod that runs and says what it is.
fn engine(pod: &Pod) -> Option<Engine> {
    let status = pod.status.as_ref().filter(|status| status.phase.as_deref() == Some("Running"))?;
    let named = pod.labels().get(keys::BACKEND).or_else(|| pod.annotations().get(keys::BACKEND))?;
    let backend = Backend::named(named)?;
    let ports = pod
        .spec
        .iter()
        .flat_map(|spec| &spec.containers)
        .flat_map(|container| container.ports.iter().flatten());
    let port =
        ports.map(|port| port.container_port).next().unwrap_or_else(|| backend.port().into());
    let ip = status.pod_ip.as_deref()?;
    let address = if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") };
    Some(Engine { backend, address })
}
