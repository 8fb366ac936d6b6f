//! What the request path is put together from, and the bounds it keeps.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use flexinfer_core::fleet::{Fleet, Served};
use flexinfer_core::openai::Liveness;
use flexinfer_core::queueing::Policy;
use flexinfer_core::routing::Preferences;
use flexinfer_telemetry::traces::Tracer;

use crate::adapters::OnDemand;
use crate::labels::Labels;
use crate::lifecycle::Lifecycle;
use crate::metrics::Metrics;
use crate::queues::Dispatch;
use crate::remembered::Remembered;
use crate::replay::Budget;
use crate::rules::Rules;

/// Tells how a model is doing at this moment.
pub type LivenessOf = Arc<dyn Fn(&Served) -> Liveness + Send + Sync>;

/// The bounds of the request path.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest body, in bytes.
    pub max_body: u64,
    /// How long a body may pause on its way here.
    pub body_pause: Duration,
    /// How long a body may take in all.
    pub body_deadline: Duration,
    /// How long a connection to an engine may take to be made.
    pub connect: Duration,
    /// How long an engine may take until its answer begins.
    pub first_byte: Duration,
    /// How long an engine may be silent within its answer.
    pub silence: Duration,
    /// How long an idle connection to an engine is kept; engines close theirs after 5 s.
    pub pooled: Duration,
    /// How long a request waits for an engine that says that it is busy, from the first time on.
    pub busy: Duration,
    /// Connections tried for one request.
    pub connections: u32,
    /// How soon a kept connection ends, from the request's first byte on, that its engine had closed before.
    pub stale: Duration,
}

/// What the stages work with.
pub struct Parts {
    /// The models, replaced as a whole whenever one changes.
    pub fleet: Arc<ArcSwap<Fleet>>,
    /// Wakes models and hands out their slots.
    pub dispatch: Arc<dyn Dispatch>,
    /// How models are doing, for lists and labels.
    pub liveness: LivenessOf,
    /// Whose turn it is among the models of a label.
    pub labels: Labels,
    /// How requests are spread over engines.
    pub routing: Preferences,
    /// What answers told, for later requests.
    pub remembered: Remembered,
    /// The bounds.
    pub limits: Limits,
    /// Who may send how much.
    pub rules: Rules,
    /// The bytes of bodies held at once.
    pub budget: Arc<Budget>,
    /// Whether requests are taken.
    pub lifecycle: Arc<Lifecycle>,
    /// How long requests wait.
    pub queue: Policy,
    /// Adapters that are loaded at their first request.
    pub adapters: Arc<OnDemand>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Who is told what each request was about, if somebody is.
    pub tracer: Tracer,
}
