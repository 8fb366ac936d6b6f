//! What FlexInfer says about a model. The controller writes it; the gateways write
//! `lastActiveTime` and `traffic`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, MicroTime, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cache_status::CacheStatus;
use super::gpu::Vendor;
use super::kv_cache_status::KvCacheStatus;

/// How the model is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelStatus {
    /// Where the model is in its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,

    /// One line for people: what happens now, or what is wrong and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// `Cached`, `Loaded`, `Ready`, `Schedulable`, `ConfigValid`, `NameUnique`, `Applied`, `Scaled`,
    /// `BenchmarkComplete`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,

    /// Where the engine runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuStatus>,

    /// The address inside the cluster under which the engine answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,

    /// When a request was last in flight or waiting. Gateways write it; it wakes the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_active_time: Option<Time>,

    /// What each gateway has in flight and waiting. An entry that is not renewed expires.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["gateway".into()]))]
    pub traffic: Vec<Traffic>,

    /// How fast the model is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,

    /// The model's place among those that share its GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_group: Option<SharedGroupStatus>,

    /// Where its weights are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheStatus>,

    /// How full the engine's key-value cache is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_cache: Option<KvCacheStatus>,

    /// Which part of loading is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loading_substage: Option<LoadingSubstage>,

    /// When that part was last seen to go on: when it began, or when more of the weights had come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loading_progress_at: Option<Time>,
}

/// Where a model is in its life.
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
    strum::IntoStaticStr,
    strum::EnumIter,
)]
#[schemars(description = "")]
pub enum Phase {
    /// It sleeps; a request wakes it.
    Idle,
    /// It shall run and waits for something: its turn, a node, its weights.
    Pending,
    /// An engine has started and loads.
    Loading,
    /// It serves.
    Ready,
    /// Another model took its GPU.
    Preempted,
    /// It cannot run; the message says why.
    Failed,
}

/// The parts of loading.
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
    strum::IntoStaticStr,
    strum::EnumIter,
)]
#[schemars(description = "")]
pub enum LoadingSubstage {
    /// Weights are being fetched from their source.
    Downloading,
    /// Weights are being made smaller.
    Quantizing,
    /// The image is being pulled.
    ImagePulling,
    /// The engine reads its weights.
    LoadingWeights,
    /// The engine compiles kernels.
    Compiling,
    /// The engine runs; its probe has not answered yet.
    HealthCheckPending,
    /// Another model took the GPU while this one loaded.
    Preempted,
}

/// Where a model's engine runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GpuStatus {
    /// The node's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What the GPUs of that node are sold as, as it is labelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Whose GPU it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor: Option<Vendor>,
    /// Its architecture, such as `sm_89` or `gfx1100`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// Its memory in MiB.
    #[serde(default, rename = "memoryMB", skip_serializing_if = "Option::is_none")]
    pub memory_mb: Option<i64>,
}

/// What one gateway has of a model's requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Traffic {
    /// The gateway's name.
    pub gateway: String,
    /// Requests that an engine works on.
    pub in_flight: i32,
    /// Requests that wait for an engine.
    pub waiting: i32,
    /// The most in flight and waiting together since the entry was last written.
    pub peak: i32,
    /// The gateway has read that the model leaves, and gives its engines nothing more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
    /// When the entry was written, by the gateway's clock.
    pub renew_time: MicroTime,
}

/// How fast a model is, as measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Metrics {
    /// Tokens per second, when it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_second: Option<String>,
    /// Seconds from start to ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_time_seconds: Option<String>,
    /// Milliseconds to a whole answer, on average, when it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub avg_latency_ms: Option<String>,
}

/// A model's place among those that share its GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SharedGroupStatus {
    /// The group's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_name: Option<String>,
    /// Whether it holds the GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<SharedGroupState>,
    /// 0 holds the GPU, 1 is next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_position: Option<i32>,
    /// The model that took the GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempted_by: Option<String>,
    /// When it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preempted_at: Option<Time>,
    /// When it can get the GPU at the earliest, where that can be foreseen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,
}

/// Whether a member of a group holds the GPU.
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
    strum::IntoStaticStr,
    strum::EnumIter,
)]
#[schemars(description = "")]
pub enum SharedGroupState {
    /// It holds the GPU.
    Active,
    /// It holds the GPU, finishes what it serves and gets nothing new.
    Draining,
    /// It waits.
    Queued,
    /// Another took the GPU from it.
    Preempted,
}
