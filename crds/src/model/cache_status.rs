//! Where a model's weights are, as far as FlexInfer knows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cache::CacheStrategy;
use super::quantize::QuantizationFormat;

/// Where a model's weights are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CacheStatus {
    /// The strategy in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<CacheStrategy>,
    /// Whether an engine can load from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// The claim that holds the weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pvc_name: Option<String>,
    /// The job that fills it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_name: Option<String>,
    /// How that job does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_phase: Option<JobPhase>,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The size of the weights in bytes, where a job has fetched or copied them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<i64>,
    /// How far they are that are being fetched or copied, while that lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<CacheProgress>,
    /// Nodes whose memory keeps a copy of the weights between loads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// What quantizing made of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantization: Option<QuantizationStatus>,
}

/// How far weights are that are being fetched or copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CacheProgress {
    /// Bytes that have come.
    pub done_bytes: i64,
    /// Bytes in all.
    pub total_bytes: i64,
}

/// How a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(description = "")]
pub enum JobPhase {
    /// It has not started.
    Pending,
    /// It runs.
    Running,
    /// It is done.
    Succeeded,
    /// It gave up.
    Failed,
}

/// What quantizing made of the weights.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuantizationStatus {
    /// The format made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<QuantizationFormat>,
    /// The kind of it, such as `Q4_K_M`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Bytes before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_size_bytes: Option<i64>,
    /// Bytes after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compressed_size_bytes: Option<i64>,
    /// Before over after, with two decimals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression_ratio: Option<String>,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantization_time: Option<String>,
    /// How far it is, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<i32>,
    /// What it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress_detail: Option<String>,
}
