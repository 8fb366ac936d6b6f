//! What happens when an engine's key-value cache fills up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Duration, Quantity};

/// How the engine's key-value cache is set up, and what happens when it fills up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KvCache {
    /// `Observe` (the default) only reports it, `Reconfigure` lowers the number of sequences,
    /// `Evict` puts the model to sleep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure_policy: Option<PressurePolicy>,

    /// The share in use, 0 to 1, at which pressure begins. The default is `"0.85"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_watermark: Option<Quantity>,

    /// The share in use, 0 to 1, at which pressure ends. The default is `"0.60"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_watermark: Option<Quantity>,

    /// Tokens in one block. The default is the engine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_block_size: Option<i32>,

    /// Host memory for blocks that are swapped out. The default is the engine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_space: Option<Quantity>,

    /// How long a reconfigured engine stays as it is. The default is `5m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconfigure_cooldown: Option<Duration>,
}

/// What happens when the cache fills up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(description = "")]
pub enum PressurePolicy {
    /// It is reported.
    Observe,
    /// The engine is started anew with fewer sequences.
    Reconfigure,
    /// The model goes to sleep.
    Evict,
}
