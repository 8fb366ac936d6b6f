//! How full an engine's key-value cache is, and what was done about it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How full an engine's key-value cache is, and what was done about it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KvCacheStatus {
    /// The share in use, 0 to 1, with four decimals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<String>,
    /// Whether it is above the high watermark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure: Option<bool>,
    /// When it last was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_pressure_time: Option<Time>,
    /// What was done then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_action: Option<PressureAction>,
    /// Whether the engine runs with fewer sequences than configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconfigured: Option<bool>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconfigured_at: Option<Time>,
    /// Sequences as configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_max_num_seqs: Option<i32>,
    /// Sequences now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconfigured_max_num_seqs: Option<i32>,
    /// Whether the model was put to sleep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evicted: Option<bool>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evicted_at: Option<Time>,
}

/// What was done about pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(description = "")]
pub enum PressureAction {
    /// It was reported.
    Observed,
    /// The engine was started anew with fewer sequences.
    Reconfigure,
    /// The model was asked to sleep.
    EvictRequested,
}
