//! The node as the API server has it, behind a trait, so that the rest works on any of them.

mod dry_run;
mod kubernetes;

use std::collections::BTreeSet;

use async_trait::async_trait;
use flexinfer_core::backends::Backend;
use flexinfer_core::hardware::marks::Node;
use jiff::Timestamp;
use serde_json::Value;

pub(super) use dry_run::DryRun;
pub(super) use kubernetes::Kubernetes;

/// Where the node is read from and written to.
#[async_trait]
pub(super) trait NodeStore: Send + Sync {
    /// The node as it is now.
    async fn read(&self) -> Result<Node, StoreError>;

    /// Applies a merge patch to the node.
    async fn patch(&self, patch: &Value) -> Result<(), StoreError>;

    /// What runs on the node.
    async fn pods(&self) -> Result<Pods, StoreError>;

    /// Calls `heard` for each pod with GPUs that ends on the node, until the API server ends the watch.
    async fn hear_of_ends(&self, heard: &(dyn Fn() + Send + Sync)) -> Result<(), StoreError>;

    /// Records a warning with `reason` and `message` on each engine's pod on the node that is not among those `told`,
    /// by their ids, and adds it there. Where it fails for one the others are told all the same.
    async fn warn(
        &self,
        reason: &str,
        message: &str,
        told: &mut BTreeSet<String>,
    ) -> Result<(), StoreError>;
}

/// What of the pods on the node matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pods {
    /// The engines that run.
    pub engines: Vec<Engine>,
    /// When the last of the pods with GPUs became ready, whosesoever they are.
    pub newest_ready: Option<Timestamp>,
}

/// An engine on the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Engine {
    /// Its kind.
    pub backend: Backend,
    /// Its pod's address and port.
    pub address: String,
}

/// Why the API server was of no use.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    /// The node was changed meanwhile: read it again.
    #[error("the node was changed meanwhile")]
    Conflict,
    /// Anything else.
    #[error("the API server could not {act}")]
    Failed {
        /// What was to be done.
        act: &'static str,
        #[source]
        source: Box<kube::Error>,
    },
    /// There is no such cluster, or it is not known how to reach it.
    #[error("no cluster is configured ({0})")]
    Unconfigured(Box<kube::Error>),
}
