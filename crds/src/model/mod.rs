//! `Model`: one model to serve, the kind that everything else is about.
//!
//! No field has a default in the schema, although the doc lines name it: an absent field stays
//! absent in what the cluster stores, so that the process's and the backend's own defaults count
//! and a `false` or `0` that somebody wrote is never mistaken for one. Defaults are applied in one
//! place, `flexinfer_core::effective`.

mod cache;
mod cache_status;
mod capabilities;
mod flash_loader;
mod gpu;
mod kv_cache;
mod kv_cache_status;
mod litellm;
mod quantize;
mod resources;
mod rules;
mod serverless;
mod status;
mod texts;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use k8s_openapi::api::core::v1::Toleration;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use cache::{Cache, CacheStrategy, CompilationCache};
pub use cache_status::{CacheProgress, CacheStatus, JobPhase, QuantizationStatus};
pub use capabilities::Capabilities;
pub use flash_loader::FlashLoader;
pub use gpu::{Gpu, Vendor, WarmPolicy};
pub use kv_cache::{KvCache, PressurePolicy};
pub use kv_cache_status::{KvCacheStatus, PressureAction};
pub use litellm::LiteLlm;
pub use quantize::{Calibration, DynamicExclusion, Quantization, QuantizationFormat};
pub use resources::Resources;
pub use rules::{BrokenRule, broken_rules};
pub use serverless::Serverless;
pub use status::{
    GpuStatus, LoadingSubstage, Metrics, ModelStatus, Phase, SharedGroupState, SharedGroupStatus,
    Traffic,
};
pub use texts::{ADAPTER_NAME, TEXT_FORMS, TextForm};

/// One model to serve: which engine runs it, from where its weights come, which GPUs it needs and
/// when it sleeps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "inference.flexinfer.ai",
    version = "v1alpha2",
    kind = "Model",
    plural = "models",
    shortname = "mdl",
    namespaced,
    status = "ModelStatus",
    derive = "PartialEq",
    doc = "One model to serve: which engine runs it, from where its weights come, which GPUs it needs and when it sleeps.",
    printcolumn(name = "Backend", type_ = "string", json_path = ".spec.backend"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Shared", type_ = "string", json_path = ".spec.gpu.shared", priority = 1),
    printcolumn(
        name = "Priority",
        type_ = "integer",
        json_path = ".spec.gpu.priority",
        priority = 1
    ),
    printcolumn(name = "TPS", type_ = "string", json_path = ".status.metrics.tokensPerSecond"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = &rules::SOURCE_IS_NAMED,
    validation = &rules::PVC_SOURCE_IS_NOT_HELD_IN_MEMORY,
    validation = &rules::LIMITS_NAME_NO_GPU,
    validation = &rules::REQUESTS_NAME_NO_GPU,
    validation = &rules::VENDOR_AGREES_WITH_NODES,
)]
pub struct ModelSpec {
    /// The engine: `vllm`, `llamacpp`, `ollama`, `mlc-llm`, `diffusers`, `comfyui`, `vllm-omni`,
    /// `simulator`, `external` for one that runs already, or `command` for any other program, which
    /// `config.command` names.
    #[schemars(length(min = 1, max = 63))]
    pub backend: String,

    /// From where the weights come: `HF://org/model`, `oci://host/name@sha256:digest`,
    /// `ollama://model:tag`, `file:///path` or `pvc://claim/path`. Backends `external`,
    /// `simulator` and `command` need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub source: Option<String>,

    /// The image to run instead of the backend's own; in local mode it is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub image: Option<String>,

    /// Pins the image, whichever it is: 64 hexadecimal digits, with or without `sha256:`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = texts::IMAGE_DIGEST))]
    pub image_digest: Option<String>,

    /// Which GPUs the model needs, and how it shares them. Without this block it runs on the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,

    /// When the model sleeps. Without this block it sleeps while nobody uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serverless: Option<Serverless>,

    /// Where the weights are kept between runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,

    /// Options of the backend, such as `contextSize` or `maxModelLen`; see the backend's page.
    /// Those of every backend: `command`, `args` and `env` run any engine, `maxConcurrency` is
    /// how many requests one engine takes at once, `servedModelName` is what the engine calls the
    /// model, `preloadOnDeploy` wakes it once before the first request.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "free_object")]
    pub config: Map<String, Value>,

    /// What the pod asks of its node beside GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,

    /// Labels of the nodes on which the model may run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,

    /// Taints that the pod tolerates, beside `dedicated=gpu:NoSchedule`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,

    /// Under which names the model is offered.
    #[serde(default, rename = "litellm", skip_serializing_if = "Option::is_none")]
    pub litellm: Option<LiteLlm>,

    /// Names that several models may share, such as `textgen`; a request for one goes to any of
    /// them. At most 10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub service_labels: Vec<String>,

    /// How the engine's key-value cache is set up, and what happens when it fills up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_cache: Option<KvCache>,

    /// What the model can do, where its backend does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,

    /// Makes the weights smaller after they were fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantize: Option<Quantization>,
}

/// The OpenAPI schema of the whole object, as it is installed on a cluster.
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(crate::schema_of::<Model>);
    &SCHEMA
}

fn free_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}
