//! Making weights smaller after they were fetched.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Makes the weights smaller after they were fetched, before the engine sees them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Quantization {
    /// `GGUF`, `AWQ`, `GPTQ`, `EXL2` or `FP8`; the backend must be able to load it.
    pub format: QuantizationFormat,

    /// The kind of GGUF, such as `Q4_K_M`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub gguf_type: Option<String>,

    /// Bits per weight, 2 to 8. The default is the format's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2, max = 8))]
    pub bits: Option<i32>,

    /// Weights that share one scale. The default is the format's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_size: Option<i32>,

    /// Whether the job uses a GPU. The default is the format's.
    #[serde(default, rename = "useGPU", skip_serializing_if = "Option::is_none")]
    pub use_gpu: Option<bool>,

    /// The most memory the job may take, in GiB. The default is 32 for GGUF, 48 for AWQ and GPTQ.
    #[serde(default, rename = "maxMemoryGB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_memory_gb: Option<i32>,

    /// The texts by which the job measures what matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,

    /// Whether scales are symmetric. The default is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sym: Option<bool>,

    /// Whether columns are ordered by activation. The default is false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desc_act: Option<bool>,

    /// Layers left as they are: `auto` (the default), `gdn` or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dynamic_exclusion: Option<DynamicExclusion>,

    /// The share of GPU memory the job may take, as a text. The default is `"0.80"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = super::texts::MEMORY_FRACTION))]
    pub gpu_memory_fraction: Option<String>,

    /// How long the job may take, in seconds. The default is the format's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_seconds: Option<i64>,

    /// Labels of the nodes on which the job may run. The default is the model's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
}

/// A format of smaller weights.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::Display,
    strum::EnumIter,
)]
#[serde(rename_all = "UPPERCASE")]
#[strum(serialize_all = "UPPERCASE")]
#[schemars(description = "")]
pub enum QuantizationFormat {
    /// For llama.cpp and Ollama.
    Gguf,
    /// Activation-aware, for vLLM.
    Awq,
    /// For vLLM.
    Gptq,
    /// For ExLlama.
    Exl2,
    /// Eight-bit floats, for vLLM.
    Fp8,
}

/// Layers that keep their precision.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema, strum::Display,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[schemars(description = "")]
pub enum DynamicExclusion {
    /// As the architecture suggests.
    Auto,
    /// The gated delta layers.
    Gdn,
    /// None.
    None,
}

/// The texts by which a quantization measures what matters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Calibration {
    /// Tokens of one sample, 128 to 32768. The default is 4096.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 128, max = 32768))]
    pub max_seq_len: Option<i32>,

    /// Samples, 8 to 2048. The default is 256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 8, max = 2048))]
    pub max_samples: Option<i32>,

    /// Samples at once, 1 to 256. The default is the quantizer's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 256))]
    pub n_parallel_calib_samples: Option<i32>,

    /// The data set. The default is `mit-han-lab/pile-val-backup`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
}
