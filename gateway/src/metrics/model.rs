//! The series of one model, looked up once and then only added to.

use std::sync::Arc;
use std::time::Duration;

use flexinfer_core::ids::EndpointId;
use flexinfer_core::limits::Scope;
use flexinfer_core::routing::{Key, Strategy};
use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge};

use super::routing::RoutingSeries;

/// How a request ended, as the label `status` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An answer below 400 went out whole.
    Success,
    /// An answer of 400 or more went out, the engine's or ours, or one broke off.
    Error,
    /// The client left before its answer was complete.
    Cancelled,
    /// A limit was reached.
    RateLimited,
    /// It did not fit into its model's context window.
    AdmissionRejected,
    /// Its model does not serve what it asked for.
    EndpointUnsupported,
    /// Its model is parked.
    Parked,
}

impl Outcome {
    /// Every outcome, in the order of the declaration.
    pub const ALL: [Self; 7] = [
        Self::Success,
        Self::Error,
        Self::Cancelled,
        Self::RateLimited,
        Self::AdmissionRejected,
        Self::EndpointUnsupported,
        Self::Parked,
    ];

    /// The value of the label `status`.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
            Self::RateLimited => "rate_limited",
            Self::AdmissionRejected => "admission_rejected",
            Self::EndpointUnsupported => "endpoint_unsupported",
            Self::Parked => "parked",
        }
    }
}

/// Counts what happens to one model's requests and engines. Cheap to clone.
#[derive(Clone)]
pub struct ModelSeries(Arc<Series>);

pub(super) struct Series {
    pub(super) name: String,
    pub(super) requests: [IntCounter; Outcome::ALL.len()],
    pub(super) request_duration: Histogram,
    pub(super) time_to_first_token: Histogram,
    pub(super) time_per_output_token: Histogram,
    pub(super) scale_ups: IntCounter,
    pub(super) queued_requests: IntCounter,
    pub(super) queue_rejected: IntCounter,
    pub(super) queue_wait: Histogram,
    pub(super) queue_depth: IntGauge,
    pub(super) active_connections: IntGauge,
    pub(super) endpoint_count: IntGauge,
    pub(super) endpoint_changes: [IntCounter; 2],
    pub(super) stalled_loads: IntCounterVec,
    pub(super) activation_retries: IntCounter,
    pub(super) activation_retry_wait: Histogram,
    pub(super) prompt_tokens: Histogram,
    pub(super) completion_tokens: Histogram,
    pub(super) completions: [IntCounter; 2],
    pub(super) rate_limited: [IntCounter; 4],
    pub(super) max_tokens_clamped: IntCounter,
    pub(super) admissions: [IntCounter; 2],
    pub(super) upstream_retries: IntCounterVec,
    pub(super) activation_duration: HistogramVec,
    pub(super) activation_phases: HistogramVec,
    pub(super) activation_failures: IntCounterVec,
    pub(super) routing: RoutingSeries,
}

impl From<Series> for ModelSeries {
    fn from(series: Series) -> Self {
        Self(Arc::new(series))
    }
}

impl ModelSeries {
    /// A request ended; `waited` is how long it took to get a slot, if it got one.
    pub fn finished(&self, outcome: Outcome, took: Duration, waited: Option<Duration>) {
        let [success, error, cancelled, limited, unfit, unsupported, parked] = &self.0.requests;
        match outcome {
            Outcome::Success => success.inc(),
            Outcome::Error => error.inc(),
            Outcome::Cancelled => cancelled.inc(),
            Outcome::RateLimited => limited.inc(),
            Outcome::AdmissionRejected => unfit.inc(),
            Outcome::EndpointUnsupported => unsupported.inc(),
            Outcome::Parked => parked.inc(),
        }
        self.0.request_duration.observe(took.as_secs_f64());
        if let Some(waited) = waited {
            self.0.queue_wait.observe(waited.as_secs_f64());
        }
    }

    /// A connection is tried again, because of `reason`.
    pub fn retried(&self, reason: &'static str) {
        self.0.upstream_retries.with_label_values(&[self.0.name.as_str(), reason]).inc();
    }

    /// A slot was booked on `endpoint`, if it has a name, because of `key`.
    pub fn routed(&self, strategy: Strategy, key: Option<&Key>, endpoint: Option<&EndpointId>) {
        self.0.routing.count(&self.0.name, strategy, key, endpoint);
    }

    /// Endpoints that are not `kept` are no more: their series end.
    pub fn keep_targets(&self, kept: impl Fn(&EndpointId) -> bool) {
        self.0.routing.keep_targets(&self.0.name, kept);
    }

    /// A request had to wait.
    pub fn queued(&self) {
        self.0.queued_requests.inc();
    }

    /// A request was refused because the queue was full.
    pub fn refused(&self) {
        self.0.queue_rejected.inc();
    }

    /// A limit of `scope` was reached.
    pub fn rate_limited(&self, scope: Scope) {
        let [global, per_model, per_caller, per_tenant] = &self.0.rate_limited;
        match scope {
            Scope::Global => global.inc(),
            Scope::PerModel => per_model.inc(),
            Scope::PerCaller => per_caller.inc(),
            Scope::PerTenant => per_tenant.inc(),
        }
    }

    /// The length of an answer was cut down.
    pub fn clamped(&self) {
        self.0.max_tokens_clamped.inc();
    }

    /// A request was measured against the context window; `fits` says how it came out.
    pub fn admission(&self, fits: bool) {
        let [within, over] = &self.0.admissions;
        if fits { within.inc() } else { over.inc() }
    }

    /// How many wait, hold a slot, and can be sent to now.
    pub fn set_load(&self, waiting: usize, active: usize, endpoints: usize) {
        self.0.queue_depth.set(gauged(waiting));
        self.0.active_connections.set(gauged(active));
        self.0.endpoint_count.set(gauged(endpoints));
    }

    /// An engine became ready, or ceased to be.
    pub fn endpoint_changed(&self, ready: bool) {
        let [added, removed] = &self.0.endpoint_changes;
        if ready { added.inc() } else { removed.inc() }
    }

    /// A load was given up at its start-up limit, while it was at `substage`.
    pub fn load_stalled(&self, substage: &'static str) {
        self.0.stalled_loads.with_label_values(&[self.0.name.as_str(), substage]).inc();
    }

    /// An engine was asked for.
    pub fn scaled_up(&self) {
        self.0.scale_ups.inc();
    }

    /// An activation is tried again after `wait`.
    pub fn activation_retried(&self, wait: Duration) {
        self.0.activation_retries.inc();
        self.0.activation_retry_wait.observe(wait.as_secs_f64());
    }

    /// An activation ended: `result` is `success` or the reason of its failure.
    pub fn activated(&self, backend: &str, result: &'static str, took: Duration) {
        let name = self.0.name.as_str();
        self.0
            .activation_duration
            .with_label_values(&[name, backend, result])
            .observe(took.as_secs_f64());
        if result != "success" {
            self.0.activation_failures.with_label_values(&[name, result]).inc();
        }
    }

    /// An activation was in `phase` for so long.
    pub fn activation_phase(&self, phase: &'static str, took: Duration) {
        let labels = [self.0.name.as_str(), phase];
        self.0.activation_phases.with_label_values(&labels).observe(took.as_secs_f64());
    }

    /// A stream brought its first piece after `first`, its last after `last`, and `tokens` in all, as
    /// far as it told them.
    pub fn streamed(&self, first: Duration, last: Duration, tokens: Option<u64>) {
        self.0.time_to_first_token.observe(first.as_secs_f64());
        let between = tokens.and_then(|tokens| u32::try_from(tokens.checked_sub(1)?).ok());
        if let Some(pace) =
            between.and_then(|between| last.saturating_sub(first).checked_div(between))
        {
            self.0.time_per_output_token.observe(pace.as_secs_f64());
        }
    }

    /// An answer told how many tokens it took, or at least why it ended.
    pub fn used(&self, prompt: Option<u64>, completion: Option<u64>, stream: bool) {
        let observe = |histogram: &Histogram, tokens: Option<u64>| {
            if let Some(tokens) = tokens.and_then(|tokens| u32::try_from(tokens).ok()) {
                histogram.observe(f64::from(tokens));
            }
        };
        observe(&self.0.prompt_tokens, prompt);
        observe(&self.0.completion_tokens, completion);
        let [whole, streamed] = &self.0.completions;
        if stream { streamed.inc() } else { whole.inc() }
    }
}

fn gauged(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
