//! The Node object and its lease: that there is a machine, what it has, and that it lives.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

/// Every kubelet's leases lie here; the API server makes the namespace.
const LEASES: &str = "kube-node-lease";

/// The control plane gives a node up that is silent for 40 s.
pub(super) const RENEWAL: Duration = Duration::from_secs(10);

/// A machine of the cluster: 16 CPUs, 64 GiB and room for 110 pods unless told otherwise.
#[derive(Clone, Debug)]
pub struct Node {
    pub(super) name: String,
    labels: BTreeMap<String, String>,
    amounts: BTreeMap<String, String>,
}

impl Node {
    /// A node without GPUs, with the labels that every kubelet sets.
    pub fn new(name: &str) -> Self {
        let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        let labels = [
            ("kubernetes.io/hostname", name),
            ("kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", "amd64"),
        ];
        let amounts = [("cpu", "16"), ("memory", "64Gi"), ("pods", "110")];
        Self {
            name: name.to_owned(),
            labels: labels.map(owned).into(),
            amounts: amounts.map(owned).into(),
        }
    }

    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Says how much of a resource there is, such as 2 of `nvidia.com/gpu`.
    #[must_use]
    pub fn resource(mut self, name: &str, amount: &str) -> Self {
        self.amounts.insert(name.to_owned(), amount.to_owned());
        self
    }
}

/// Makes the node and its lease; a node that registers again finds its own and takes it over.
pub(super) async fn register(client: &Client, node: &Node) -> Result<(), kube::Error> {
    renew_once(client, &node.name).await?;
    let nodes: Api<v1::Node> = Api::all(client.clone());
    let mut object = v1::Node::default();
    object.metadata.name = Some(node.name.clone());
    object.metadata.labels = Some(node.labels.clone());
    match nodes.create(&PostParams::default(), &object).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        created => drop(created?),
    }
    let now = Time(Timestamp::now());
    let status = json!({
        "status": {
            "capacity": node.amounts,
            "allocatable": node.amounts,
            "addresses": [{ "type": "InternalIP", "address": "127.0.0.1" }],
            "conditions": [{
                "type": "Ready",
                "status": "True",
                "reason": "KubeletReady",
                "message": "processes can be started",
                "lastHeartbeatTime": now,
                "lastTransitionTime": now,
            }],
        },
    });
    nodes.patch_status(&node.name, &PatchParams::default(), &Patch::Strategic(status)).await?;
    Ok(())
}

/// Keeps the node alive in the eyes of the control plane.
pub(super) async fn renew(client: &Client, node: &str) {
    loop {
        tokio::time::sleep(RENEWAL).await;
        // An API server that is away is no reason to end pods; the next renewal may reach it.
        drop(renew_once(client, node).await);
    }
}

pub(super) async fn renew_once(client: &Client, node: &str) -> Result<(), kube::Error> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), LEASES);
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": node },
        "spec": {
            "holderIdentity": node,
            "leaseDurationSeconds": 40,
            "renewTime": MicroTime(Timestamp::now()),
        },
    });
    leases.patch(node, &PatchParams::apply("kubelet").force(), &Patch::Apply(lease)).await?;
    Ok(())
}
