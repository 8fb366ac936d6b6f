//! One model's series in all tables: they begin at zero when it is known, and end with it.

use flexinfer_core::limits::Scope;

use super::model::{ModelSeries, Outcome, Series};
use super::tables::Tables;

const SCOPES: [Scope; 4] = [Scope::Global, Scope::PerModel, Scope::PerCaller, Scope::PerTenant];
const CLAMP_REASON: &str = "context_window_headroom";
const ADMISSIONS: [[&str; 2]; 2] = [["in_budget", "true"], ["over_budget", "false"]];
const RETRY_REASONS: &[&str] = &["connect", "reset", "busy", "adapter"];

/// The values of `change_type`.
const ENDPOINT_CHANGES: [&str; 2] = ["added", "removed"];

impl Tables {
    /// The series of one model, begun at zero.
    pub(super) fn model(&self, name: &str) -> ModelSeries {
        for reason in RETRY_REASONS {
            self.upstream_retries.with_label_values(&[name, reason]);
        }
        ModelSeries::from(Series {
            requests: Outcome::ALL
                .map(|outcome| self.requests.with_label_values(&[name, outcome.label()])),
            request_duration: self.request_duration.with_label_values(&[name]),
            time_to_first_token: self.time_to_first_token.with_label_values(&[name]),
            time_per_output_token: self.time_per_output_token.with_label_values(&[name]),
            scale_ups: self.scale_ups.with_label_values(&[name]),
            queued_requests: self.queued_requests.with_label_values(&[name]),
            queue_rejected: self.queue_rejected.with_label_values(&[name]),
            queue_wait: self.queue_wait.with_label_values(&[name]),
            queue_depth: self.queue_depth.with_label_values(&[name]),
            active_connections: self.active_connections.with_label_values(&[name]),
            endpoint_count: self.endpoint_count.with_label_values(&[name]),
            endpoint_changes: ENDPOINT_CHANGES
                .map(|change| self.endpoint_changes.with_label_values(&[name, change])),
            stalled_loads: self.stalled_loads.clone(),
            activation_retries: self.activation_retries.with_label_values(&[name]),
            activation_retry_wait: self.activation_retry_wait.with_label_values(&[name]),
            prompt_tokens: self.prompt_tokens.with_label_values(&[name]),
            completion_tokens: self.completion_tokens.with_label_values(&[name]),
            completions: ["false", "true"]
                .map(|stream| self.completions.with_label_values(&[name, stream])),
            rate_limited: SCOPES
                .map(|scope| self.rate_limited.with_label_values(&[name, scope.into()])),
            max_tokens_clamped: self.max_tokens_clamped.with_label_values(&[name, CLAMP_REASON]),
            admissions: ADMISSIONS
                .map(|[reason, allow]| self.admissions.with_label_values(&[name, reason, allow])),
            name: name.to_owned(),
            upstream_retries: self.upstream_retries.clone(),
            activation_duration: self.activation_duration.clone(),
            activation_phases: self.activation_phases.clone(),
            activation_failures: self.activation_failures.clone(),
            routing: self.routing.model(),
        })
    }

    /// Ends the series of one model. Those with labels of their own beside the model's stay as they are
    /// until the process ends: they are few, and nothing adds to them.
    pub(super) fn forget(&self, name: &str) {
        for outcome in Outcome::ALL {
            let _ = self.requests.remove_label_values(&[name, outcome.label()]);
        }
        for reason in RETRY_REASONS {
            let _ = self.upstream_retries.remove_label_values(&[name, reason]);
        }
        for scope in SCOPES {
            let _ = self.rate_limited.remove_label_values(&[name, scope.into()]);
        }
        for change in ENDPOINT_CHANGES {
            let _ = self.endpoint_changes.remove_label_values(&[name, change]);
        }
        self.routing.forget(name);
        self.labels.forget(name);
        let _ = self.max_tokens_clamped.remove_label_values(&[name, CLAMP_REASON]);
        for [reason, allow] in ADMISSIONS {
            let _ = self.admissions.remove_label_values(&[name, reason, allow]);
        }
        for stream in ["false", "true"] {
            let _ = self.completions.remove_label_values(&[name, stream]);
        }
        for table in
            [&self.scale_ups, &self.queued_requests, &self.queue_rejected, &self.activation_retries]
        {
            let _ = table.remove_label_values(&[name]);
        }
        for table in [&self.queue_depth, &self.active_connections, &self.endpoint_count] {
            let _ = table.remove_label_values(&[name]);
        }
        for table in [
            &self.request_duration,
            &self.time_to_first_token,
            &self.time_per_output_token,
            &self.queue_wait,
            &self.activation_retry_wait,
            &self.prompt_tokens,
            &self.completion_tokens,
        ] {
            let _ = table.remove_label_values(&[name]);
        }
    }
}
