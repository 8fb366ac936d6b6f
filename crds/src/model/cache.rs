//! Where a model's weights are kept between runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::flash_loader::FlashLoader;
use crate::Quantity;

/// Where the model's weights are kept between runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cache {
    /// `Memory`, `SharedPVC`, `Local` (a folder of the node) or `None`. The default is `Memory`
    /// for a model with `gpu.shared`, else `SharedPVC`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<CacheStrategy>,

    /// The claim that holds the weights with `SharedPVC`. A claim that is named must exist; the
    /// default, `<model>-cache`, is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub pvc_name: Option<String>,

    /// The storage class of a claim that is made. The default is the cluster's own default class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<String>,

    /// The size of a claim that is made, and the bound of a memory cache. The default is `50Gi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Quantity>,

    /// The node's folder with `Local`; `<namespace>/<model>` is appended. The default is
    /// `/var/lib/flexinfer/models`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_path: Option<String>,

    /// Kernels that the engine compiled, kept so that the next start is faster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compilation_cache: Option<CompilationCache>,

    /// Copies the weights to memory before the engine starts, by many readers at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flash_loader: Option<FlashLoader>,
}

/// Where weights are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(description = "")]
pub enum CacheStrategy {
    /// In the node's memory, as long as the pod lives.
    Memory,
    /// On a persistent volume claim.
    #[serde(rename = "SharedPVC")]
    SharedPvc,
    /// In a folder of the node.
    Local,
    /// Nowhere: fetched at every start.
    None,
}

/// Compiled kernels kept between runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompilationCache {
    /// The default is true for models with `gpu.shared` on AMD or `auto`, else false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,

    /// The node's folder. The default is `/var/lib/flexinfer/compile-cache`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_path: Option<String>,

    /// The most it should take. The default is `2Gi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_limit: Option<Quantity>,
}
