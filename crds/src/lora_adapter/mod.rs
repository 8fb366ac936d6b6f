//! `LoRAAdapter`: small weights that make another model of one that is served, under a name of their
//! own.

mod status;

use std::sync::LazyLock;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use status::{AdapterPhase, LoRAAdapterStatus};

pub use crate::model::ADAPTER_NAME;

/// A LoRA adapter: which Model it is added to, under which name, and from where it comes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "inference.flexinfer.ai",
    version = "v1alpha2",
    kind = "LoRAAdapter",
    plural = "loraadapters",
    shortname = "lora",
    namespaced,
    status = "LoRAAdapterStatus",
    derive = "PartialEq",
    doc = "A LoRA adapter: which Model it is added to, under which name, and from where it comes.",
    printcolumn(name = "Model", type_ = "string", json_path = ".spec.modelRef"),
    printcolumn(name = "Adapter", type_ = "string", json_path = ".spec.adapterName"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Loaded", type_ = "integer", json_path = ".status.loadedReplicas"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct LoRAAdapterSpec {
    /// The Model of the same namespace that the adapter is added to.
    #[schemars(length(min = 1, max = 253))]
    pub model_ref: String,

    /// What requests call it, and its engine knows it by: letters, digits and `._:/@+-`.
    #[schemars(regex(pattern = ADAPTER_NAME))]
    pub adapter_name: String,

    /// From where its weights come.
    pub source: AdapterSource,

    /// The largest rank of its matrices, which the engine makes room for. The default is the
    /// engine's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 512))]
    pub max_rank: Option<i32>,

    /// Whether it is loaded with its model rather than at its first request. The default is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preload: Option<bool>,
}

/// From where an adapter's weights come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdapterSource {
    /// What `uri` is.
    pub r#type: AdapterSourceType,

    /// A repository of the hub (`org/adapter`), an OCI reference, or a path that the engine sees.
    #[schemars(length(min = 1, max = 2048))]
    pub uri: String,
}

/// What an adapter's `uri` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AdapterSourceType {
    /// A repository of Hugging Face's hub, which the engine downloads.
    HuggingFace,
    /// A reference of an OCI registry.
    #[serde(rename = "OCI")]
    Oci,
    /// A folder that the engine sees; in local mode a path from the folder of the Models' files.
    LocalPath,
}

/// The OpenAPI schema of the whole object, as it is installed on a cluster.
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(crate::schema_of::<LoRAAdapter>);
    &SCHEMA
}
