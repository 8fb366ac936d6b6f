//! What a model needs of GPUs, and how it shares one.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rules;
use crate::Duration;

/// Which GPUs the model needs and how it shares them with other models.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = &rules::CPU_IS_NOT_SHARED,
    validation = &rules::CPU_HAS_NO_COUNT,
    validation = &rules::CPU_HAS_NO_VRAM,
)]
pub struct Gpu {
    /// Whose GPU: `auto` (the default) takes what the nodes offer, `cpu` uses none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<Vendor>,

    /// Models that name the same group share one GPU: one of them is loaded at a time.
    /// Empty (the default) shares with nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub shared: Option<String>,

    /// Who may take the shared GPU from whom, 0 to 1000; the higher one may. The default is 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000))]
    pub priority: Option<i32>,

    /// How many GPUs one engine uses, 1 to 8. The default is 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8))]
    pub count: Option<i32>,

    /// How much GPU memory the model takes, in MiB per GPU. Lets several models of a group stay
    /// loaded where they fit, and keeps the model off GPUs that are too small.
    #[serde(default, rename = "vramEstimateMB", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub vram_estimate_mb: Option<i64>,

    /// How long a model of the group that has work keeps the GPU after a swap. The largest value
    /// of the group counts; `0s` switches it off. The default is `5m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_cooldown: Option<Duration>,

    /// Gives the shared GPU to this model now, before all others. Meant for a person at work;
    /// the default is false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force_promotion: Option<bool>,

    /// `primary` makes this model the one that holds the shared GPU while nobody asks for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_policy: Option<WarmPolicy>,

    /// How long the model may go on with what it serves when it has to leave the GPU. The default
    /// is `60s`, for image models `300s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_timeout: Option<Duration>,
}

/// Whose GPU a model runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(description = "")]
pub enum Vendor {
    /// What the nodes offer.
    Auto,
    /// NVIDIA.
    Nvidia,
    /// AMD.
    Amd,
    /// No GPU.
    Cpu,
}

/// What a model does in its group while nobody asks for any of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(description = "")]
pub enum WarmPolicy {
    /// It holds the GPU.
    Primary,
}
