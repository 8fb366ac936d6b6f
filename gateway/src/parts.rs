//! What the request path is put together from, and the bounds it keeps.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use flexinfer_core::fleet::{Fleet, Served};
use flexinfer_core::ids::{EndpointId, ModelId};
use flexinfer_core::openai::Liveness;
use flexinfer_core::queueing::Policy;
use flexinfer_core::routing::{Pins, Preferences};
use flexinfer_telemetry::traces::Tracer;
use parking_lot::Mutex;

use crate::adapters::OnDemand;
use crate::labels::Labels;
use crate::lifecycle::Lifecycle;
use crate::metrics::Metrics;
use crate::queues::Dispatch;
use crate::replay::Budget;
use crate::rules::Rules;

/// Tells how a model is doing at this moment.
pub type LivenessOf = Arc<dyn Fn(&Served) -> Liveness + Send + Sync>;

/// Things of which it is known which engine has them.
const PINS: usize = 100_000;

/// What answers told, for later requests that name it.
pub struct Remembered {
    /// Which engine has what.
    pub(crate) engines: Mutex<Pins<EndpointId>>,
    /// Which model made a stored response, by its id.
    pub(crate) models: Mutex<Pins<ModelId>>,
}

/// Nothing yet, and never more than has room in a few tens of megabytes.
pub fn pins() -> Remembered {
    Remembered { engines: Mutex::new(Pins::new(PINS)), models: Mutex::new(Pins::new(PINS)) }
}

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
    /// Where what later requests name is.
    pub pins: Remembered,
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
