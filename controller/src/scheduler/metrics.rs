//! What the extender shows, under the original's names where it has them.

use std::time::Duration;

use flexinfer_core::placement::{Pod, Refusal, Tenant};
use prometheus::{
    Encoder as _, GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry, TextEncoder,
};

/// The two questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Filter,
    Score,
}

impl Phase {
    const fn name(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Score => "score",
        }
    }
}

#[derive(Clone)]
pub(super) struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    seconds: HistogramVec,
    refused: IntCounterVec,
    watch_errors: IntCounterVec,
    tenant_ratio: GaugeVec,
    tenant_adjustment: GaugeVec,
}

impl Metrics {
    pub(super) fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let counters = |name: &str, help: &str, labels: &[&str]| {
            let counters = IntCounterVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(counters.clone()))?;
            Ok::<_, prometheus::Error>(counters)
        };
        let gauges = |name: &str, help: &str| {
            let gauges = GaugeVec::new(Opts::new(name, help), &["namespace", "tenant"])?;
            registry.register(Box::new(gauges.clone()))?;
            Ok::<_, prometheus::Error>(gauges)
        };
        let buckets = vec![0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];
        let seconds = HistogramVec::new(
            HistogramOpts::new("flexinfer_scheduler_request_seconds", "Time to answer.")
                .buckets(buckets),
            &["phase"],
        )?;
        registry.register(Box::new(seconds.clone()))?;
        Ok(Self {
            requests: counters(
                "flexinfer_scheduler_requests_total",
                "Questions of kube-scheduler, by phase and result.",
                &["phase", "result"],
            )?,
            refused: counters(
                "flexinfer_scheduler_nodes_refused_total",
                "Nodes that could not hold a pod, by reason.",
                &["reason"],
            )?,
            watch_errors: counters(
                "flexinfer_scheduler_watch_errors_total",
                "Watches that broke off.",
                &["watch"],
            )?,
            tenant_ratio: gauges(
                "flexinfer_scheduler_tenant_usage_ratio",
                "GPUs of the tenant by its budget, at its last pod.",
            )?,
            tenant_adjustment: gauges(
                "flexinfer_scheduler_tenant_score_adjustment",
                "What the most sought-after node was worth to the tenant, at its last pod.",
            )?,
            seconds,
            registry,
        })
    }

    pub(super) fn answered(&self, phase: Phase, result: &str, took: Duration) {
        self.requests.with_label_values(&[phase.name(), result]).inc();
        self.seconds.with_label_values(&[phase.name()]).observe(took.as_secs_f64());
    }

    pub(super) fn refused(&self, refusals: &[Option<Refusal>]) {
        for refusal in refusals.iter().flatten() {
            let reason: &str = refusal.into();
            self.refused.with_label_values(&[reason]).inc();
        }
    }

    pub(super) fn watch_failed(&self, watch: &str) {
        self.watch_errors.with_label_values(&[watch]).inc();
    }

    pub(super) fn tenant(&self, pod: &Pod, tenant: &Tenant) {
        let labels = [pod.namespace.as_str(), pod.tenant.as_str()];
        self.tenant_ratio.with_label_values(&labels).set(tenant.ratio);
        self.tenant_adjustment.with_label_values(&labels).set(tenant.adjustment);
    }

    pub(super) fn page(&self) -> Result<Vec<u8>, prometheus::Error> {
        let mut page = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut page)?;
        Ok(page)
    }
}
