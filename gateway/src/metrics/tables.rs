//! The definition of every metric: name, help, labels, buckets.

use prometheus::{
    Histogram, HistogramVec, IntCounterVec, IntGaugeVec, Registry, exponential_buckets,
};

use super::labels::LabelTables;
use super::registrar::{Defined, Registrar};
use super::routing::RoutingTables;

/// A generation takes from milliseconds to minutes.
const REQUEST_BUCKETS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0,
    640.0,
];
const FIRST_TOKEN_BUCKETS: &[f64] = &[
    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0,
];
const TOKEN_BUCKETS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5];
const QUEUE_WAIT_BUCKETS: &[f64] = &[0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0];
const ACTIVATION_BUCKETS: &[f64] =
    &[1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 180.0, 300.0, 600.0, 900.0];
const SHUTDOWN_BUCKETS: &[f64] = &[0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0];
const REFRESH_BUCKETS: &[f64] = &[0.0001, 0.001, 0.01, 0.1, 1.0, 10.0];

/// The metrics by name, each a table of series.
pub(super) struct Tables {
    pub(super) requests: IntCounterVec,
    pub(super) request_duration: HistogramVec,
    pub(super) time_to_first_token: HistogramVec,
    pub(super) time_per_output_token: HistogramVec,
    pub(super) scale_ups: IntCounterVec,
    pub(super) upstream_retries: IntCounterVec,
    pub(super) queued_requests: IntCounterVec,
    pub(super) queue_rejected: IntCounterVec,
    pub(super) queue_wait: HistogramVec,
    pub(super) queue_depth: IntGaugeVec,
    pub(super) active_connections: IntGaugeVec,
    pub(super) endpoint_count: IntGaugeVec,
    pub(super) endpoint_changes: IntCounterVec,
    pub(super) stalled_loads: IntCounterVec,
    pub(super) activation_retries: IntCounterVec,
    pub(super) activation_retry_wait: HistogramVec,
    pub(super) activation_duration: HistogramVec,
    pub(super) activation_phases: HistogramVec,
    pub(super) activation_failures: IntCounterVec,
    pub(super) prompt_tokens: HistogramVec,
    pub(super) completion_tokens: HistogramVec,
    pub(super) completions: IntCounterVec,
    pub(super) rate_limited: IntCounterVec,
    pub(super) max_tokens_clamped: IntCounterVec,
    pub(super) admissions: IntCounterVec,
    pub(super) routing: RoutingTables,
    pub(super) labels: LabelTables,
    pub(super) shutdowns: IntCounterVec,
    pub(super) shutdown_duration: Histogram,
    pub(super) endpoint_refresh_duration: Histogram,
    pub(super) tls_certificate_expiry: IntGaugeVec,
    pub(super) tls_certificate_reloads: IntCounterVec,
}

impl Tables {
    #[expect(clippy::too_many_lines, reason = "one row per metric")]
    pub(super) fn register(registry: &Registry) -> prometheus::Result<(Self, Vec<Defined>)> {
        let new = Registrar::new(registry);
        let model = &["model"];
        let tokens = exponential_buckets(16.0, 2.0, 12)?;
        let tables = Self {
            requests: new.counter("requests_total", "Requests answered.", &["model", "status"])?,
            request_duration: new.histogram(
                "request_duration_seconds",
                "Time from a request's head to its last byte.",
                model,
                REQUEST_BUCKETS,
            )?,
            time_to_first_token: new.histogram(
                "time_to_first_token_seconds",
                "Time from a request's head to the first piece of its stream.",
                model,
                FIRST_TOKEN_BUCKETS,
            )?,
            time_per_output_token: new.histogram(
                "time_per_output_token_seconds",
                "Mean time between the tokens of a stream that told how many they were.",
                model,
                TOKEN_BUCKETS,
            )?,
            scale_ups: new.counter("scale_ups_total", "Engines asked for.", model)?,
            upstream_retries: new.counter(
                "upstream_retries_total",
                "Connections to engines tried again.",
                &["model", "reason"],
            )?,
            queued_requests: new.counter(
                "queued_requests_total",
                "Requests that had to wait.",
                model,
            )?,
            queue_rejected: new.counter(
                "queue_rejected_total",
                "Requests refused because the queue was full.",
                model,
            )?,
            queue_wait: new.histogram(
                "queue_wait_duration_seconds",
                "Time from asking for a slot to getting it.",
                model,
                QUEUE_WAIT_BUCKETS,
            )?,
            queue_depth: new.gauge("queue_depth", "Requests that wait.")?,
            active_connections: new.gauge("active_connections", "Requests that hold a slot.")?,
            endpoint_count: new.gauge("endpoint_count", "Engines that are ready.")?,
            endpoint_changes: new.counter(
                "endpoint_changes_total",
                "Engines that became ready, and that ceased to be.",
                &["model", "change_type"],
            )?,
            stalled_loads: new.counter(
                "stalled_load_total",
                "Loads that were given up at their start-up limit.",
                &["model", "substage"],
            )?,
            activation_retries: new.counter(
                "activation_retries_total",
                "Activations tried again after a failure.",
                model,
            )?,
            activation_retry_wait: new.histogram(
                "activation_retry_wait_duration_seconds",
                "Time between a failed activation and the next try.",
                model,
                QUEUE_WAIT_BUCKETS,
            )?,
            activation_duration: new.histogram(
                "activation_duration_seconds",
                "Time from asking for an engine until it was ready or had failed.",
                &["model", "backend", "result"],
                ACTIVATION_BUCKETS,
            )?,
            activation_phases: new.histogram(
                "activation_phase_duration_seconds",
                "Time an activation spent in one phase: Queued, Draining and Stopping while another model left for it, then those of status.loadingSubstage; on a cluster also Deciding until the controller takes it up, Scheduling until a node takes its pod and Starting until anything of that runs.",
                &["model", "phase"],
                ACTIVATION_BUCKETS,
            )?,
            activation_failures: new.counter(
                "activation_failures_total",
                "Activations that failed.",
                &["model", "reason"],
            )?,
            prompt_tokens: new.histogram(
                "request_prompt_tokens",
                "Prompt tokens per request.",
                model,
                &tokens,
            )?,
            completion_tokens: new.histogram(
                "request_completion_tokens",
                "Completion tokens per request.",
                model,
                &tokens,
            )?,
            completions: new.counter(
                "completions_total",
                "Answers that told why they ended or what they took.",
                &["model", "stream"],
            )?,
            rate_limited: new.counter(
                "rate_limited_total",
                "Requests refused because a limit was reached.",
                &["model", "scope"],
            )?,
            max_tokens_clamped: new.counter(
                "max_tokens_clamped_total",
                "Requests whose answer was cut down to what fits.",
                &["model", "reason"],
            )?,
            admissions: new.counter(
                "admission_decisions_total",
                "Requests measured against their model's context window.",
                &["model", "reason", "allow"],
            )?,
            routing: RoutingTables::register(&new)?,
            labels: LabelTables::register(&new)?,
            shutdowns: new.counter("shutdowns_total", "Shutdowns.", &["result"])?,
            shutdown_duration: new.plain_histogram(
                "shutdown_duration_seconds",
                "Time a shutdown took.",
                SHUTDOWN_BUCKETS,
            )?,
            endpoint_refresh_duration: new.plain_histogram(
                "endpoint_refresh_duration_seconds",
                "Time from a change of endpoints until requests are sent by it.",
                REFRESH_BUCKETS,
            )?,
            tls_certificate_expiry: new.gauge_by(
                "tls_certificate_expiry_timestamp_seconds",
                "When the TLS certificate that clients are shown expires.",
                &[],
            )?,
            tls_certificate_reloads: new.counter(
                "tls_certificate_reloads_total",
                "Changes of the TLS certificate's files, by whether they count.",
                &["result"],
            )?,
        };
        Ok((tables, new.defined()))
    }
}
