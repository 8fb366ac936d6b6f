//! A Model with every default applied: the one place where defaults meet a spec.

use std::time::Duration;

use crate::ids::{GroupId, ModelId};

/// What a Model means once its own values, its backend's defaults and the process's defaults are
/// put together. Everything that serves a model reads this and never the raw spec.
#[derive(Clone, Debug, PartialEq)]
pub struct Effective {
    /// Which Model this is.
    pub id: ModelId,
    /// `metadata.generation` on a cluster, a counter of edits in local mode.
    pub generation: u64,
    /// The group whose members share a GPU; a model that shares with nobody is alone.
    pub group: GroupId,
    /// `gpu.priority`, 0..=1000, default 100.
    pub priority: i32,
    /// `gpu.forcePromotion`.
    pub force_promotion: bool,
    /// `gpu.warmPolicy: primary`.
    pub warm_primary: bool,
    /// `gpu.swapCooldown`, default 5 minutes; the group uses the largest of its members.
    pub swap_cooldown: Duration,
    /// `gpu.vramEstimateMB` in MiB, for the sum of the model's GPUs.
    pub vram_estimate_mib: Option<u64>,
    /// `gpu.drainTimeout`: how long a leaving model may finish what it serves.
    pub drain_limit: Duration,
    /// Engines that stay up without any request.
    pub min_replicas: u32,
    /// The most engines that load may ask for; never below `min_replicas`, never zero.
    pub max_replicas: u32,
    /// How long nothing may be in flight before the model goes to sleep.
    pub idle_timeout: Duration,
    /// `serverless.coldStartTimeout`, if the Model says one.
    pub cold_start_timeout: Option<Duration>,
    /// How long one engine may take from its start until its probe answers.
    pub startup_limit: Duration,
    /// `config.preloadOnDeploy` of a model that shares with nobody.
    pub preload: bool,
    /// Requests at once per engine; `None` is no limit.
    pub slots: Option<u32>,
    /// The annotation `flexinfer.ai/max-queue`, if set: 0 is no queue.
    pub max_queue: Option<u32>,
    /// The name the engine itself knows the model by, written into the request where it differs.
    pub served_name: Option<String>,
    /// `litellm.servedModelName` and `litellm.aliases`, trimmed, without duplicates.
    pub aliases: Vec<String>,
    /// `serviceLabels`.
    pub service_labels: Vec<String>,
    /// `litellm.enabled: false`: the model answers to nobody and is not listed.
    pub parked: bool,
}
