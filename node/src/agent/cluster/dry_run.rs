//! A store that prints what would be written.

use std::collections::BTreeSet;

use async_trait::async_trait;
use flexinfer_core::hardware::marks::Node;
use parking_lot::Mutex;
use serde_json::Value;

use super::{Kubernetes, NodeStore, Pods, StoreError};

/// Reads from the cluster, if there is one, and prints each patch as a line of JSON, once.
pub(in crate::agent) struct DryRun {
    cluster: Option<Kubernetes>,
    printed: Mutex<Option<Value>>,
}

impl DryRun {
    pub(in crate::agent) fn of(cluster: Option<Kubernetes>) -> Self {
        Self { cluster, printed: Mutex::default() }
    }
}

#[async_trait]
impl NodeStore for DryRun {
    async fn read(&self) -> Result<Node, StoreError> {
        match &self.cluster {
            Some(cluster) => cluster.read().await,
            None => Ok(Node::default()),
        }
    }

    async fn patch(&self, patch: &Value) -> Result<(), StoreError> {
        let mut printed = self.printed.lock();
        if printed.as_ref() != Some(patch) {
            println!("{patch}");
            *printed = Some(patch.clone());
        }
        Ok(())
    }

    async fn pods(&self) -> Result<Pods, StoreError> {
        match &self.cluster {
            Some(cluster) => cluster.pods().await,
            None => Ok(Pods::default()),
        }
    }

    async fn hear_of_ends(&self, _: &(dyn Fn() + Send + Sync)) -> Result<(), StoreError> {
        std::future::pending().await
    }

    async fn warn(
        &self,
        reason: &str,
        message: &str,
        _: &mut BTreeSet<String>,
    ) -> Result<(), StoreError> {
        tracing::info!(reason, message, "would be recorded as an event");
        Ok(())
    }
}
