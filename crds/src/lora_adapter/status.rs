//! What FlexInfer says about an adapter.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the adapter is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoRAAdapterStatus {
    /// Where the adapter is in its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<AdapterPhase>,

    /// One line for people: what happens now, or what is wrong and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// `Loaded`, `NameUnique`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// Replicas of the model that have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded_replicas: Option<i32>,

    /// Replicas of the model that are up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_replicas: Option<i32>,
}

/// Where an adapter is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AdapterPhase {
    /// Its model is not up, or does not exist.
    Pending,
    /// Its weights are fetched.
    Caching,
    /// At least one replica has it.
    Loaded,
    /// It is being taken out.
    Unloading,
    /// It cannot be loaded; the message says why.
    Failed,
}
