//! What came of making weights smaller, under the original's names.

use flexinfer_core::ids::ModelId;
use flexinfer_crds::Model;
use flexinfer_crds::conditions::{ConditionReason, ConditionType};
use flexinfer_crds::model::{ModelStatus, QuantizationStatus};
use prometheus::{GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry};

use crate::world::Member;

/// Seconds that it may take: from a minute to two hours, as the original's histogram has them.
const DURATIONS: [f64; 8] = [60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0];

#[derive(Clone)]
pub(super) struct Quantizing {
    duration: HistogramVec,
    jobs: IntCounterVec,
    ratio: GaugeVec,
    size: GaugeVec,
}

impl Quantizing {
    pub(super) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let gauges = |name: &str, help: &str| {
            let gauges = GaugeVec::new(Opts::new(name, help), &["model", "namespace", "format"])?;
            registry.register(Box::new(gauges.clone()))?;
            Ok::<_, prometheus::Error>(gauges)
        };
        let options = HistogramOpts::new(
            "flexinfer_quantization_duration_seconds",
            "How long it took to make a model's weights smaller.",
        );
        let labels = ["model", "namespace", "format", "type"];
        let duration = HistogramVec::new(options.buckets(DURATIONS.to_vec()), &labels)?;
        let options = Opts::new(
            "flexinfer_quantization_jobs_total",
            "Jobs that made weights smaller or failed to, by how they ended.",
        );
        let jobs = IntCounterVec::new(options, &["model", "namespace", "status"])?;
        registry.register(Box::new(duration.clone()))?;
        registry.register(Box::new(jobs.clone()))?;
        let ratio = gauges(
            "flexinfer_quantization_compression_ratio",
            "How many times smaller a model's weights were made.",
        )?;
        let size = gauges(
            "flexinfer_quantization_cache_size_bytes",
            "What a model's smaller weights take on their claim.",
        )?;
        Ok(Self { duration, jobs, ratio, size })
    }

    /// What is known of a member's smaller weights now.
    pub(super) fn saw(&self, member: &Member, status: &ModelStatus) {
        let Some((format, made)) = made(Some(status)) else { return };
        let labels = [&*member.id.name, &*member.id.namespace, &format];
        if let Some(ratio) = made.compression_ratio.as_ref().and_then(|text| text.parse().ok()) {
            self.ratio.with_label_values(&labels).set(ratio);
        }
        if let Some(bytes) = made.compressed_size_bytes {
            #[expect(clippy::cast_precision_loss, reason = "no claim holds 2^52 bytes")]
            self.size.with_label_values(&labels).set(bytes as f64);
        }
    }

    /// A member's status changed to `new`: whether a Job ended, and how.
    pub(super) fn changed(&self, member: &Member, new: &ModelStatus) {
        let old = member.model.status.as_ref();
        let (model, namespace) = (&*member.id.name, &*member.id.namespace);
        if failed(Some(new)) && !failed(old) {
            self.jobs.with_label_values(&[model, namespace, "failed"]).inc();
        }
        let Some((format, now)) = made(Some(new)).filter(|now| made(old).as_ref() != Some(now))
        else {
            return;
        };
        self.jobs.with_label_values(&[model, namespace, "succeeded"]).inc();
        let seconds = now.quantization_time.as_ref().and_then(|text| text.strip_suffix('s'));
        if let Some(seconds) = seconds.and_then(|text| text.parse().ok()) {
            let kind = now.kind.as_deref().unwrap_or_default();
            self.duration.with_label_values(&[model, namespace, &format, kind]).observe(seconds);
        }
    }

    /// Ends the series of a model that is gone; what was counted stays.
    pub(super) fn forget(&self, id: &ModelId, model: &Model) {
        let Some((format, _)) = made(model.status.as_ref()) else { return };
        let labels = [&*id.name, &*id.namespace, &format];
        for gauges in [&self.ratio, &self.size] {
            let _never_known = gauges.remove_label_values(&labels);
        }
    }
}

/// Smaller weights that are whole, with their format in words.
fn made(status: Option<&ModelStatus>) -> Option<(String, &QuantizationStatus)> {
    let made = status?.cache.as_ref()?.quantization.as_ref()?;
    let format = made.format.filter(|_| made.progress == Some(100))?;
    Some((format.to_string(), made))
}

fn failed(status: Option<&ModelStatus>) -> bool {
    let conditions = status.into_iter().flat_map(|status| &status.conditions);
    let (kind, reason): (&str, &str) =
        (ConditionType::Cached.into(), ConditionReason::QuantizationFailed.into());
    conditions.into_iter().any(|found| found.type_ == kind && found.reason == reason)
}

#[cfg(test)]
mod tests {
    use flexinfer_crds::{Model, ModelSpec};
    use serde_json::{Value, json};

    use super::*;
    use crate::metrics::tests::page;

    fn status(quantization: &Value) -> ModelStatus {
        serde_json::from_value(json!({ "cache": { "quantization": quantization } })).unwrap()
    }

    fn known_as(status: ModelStatus) -> Member {
        let mut model = Model::new("llama", ModelSpec::default());
        model.status = Some(status);
        Member::bare("models", model)
    }

    #[test]
    fn what_came_of_a_job_is_told_once_and_its_outcome_while_the_model_is_there() {
        let registry = Registry::new();
        let quantizing = Quantizing::new(&registry).unwrap();
        let made = status(&json!({
            "format": "GGUF", "type": "Q4_K_M", "progress": 100, "quantizationTime": "90s",
            "compressedSizeBytes": 1000, "compressionRatio": "3.50",
        }));
        let before = known_as(status(&json!({ "format": "GGUF", "progress": 40 })));
        quantizing.changed(&before, &made);
        let after = known_as(made.clone());
        quantizing.changed(&after, &made);
        quantizing.saw(&after, &made);
        let told = page(&registry);
        let of = "format=\"GGUF\",model=\"llama\",namespace=\"models\"";
        for line in [
            format!("flexinfer_quantization_compression_ratio{{{of}}} 3.5"),
            format!("flexinfer_quantization_cache_size_bytes{{{of}}} 1000"),
            format!("flexinfer_quantization_duration_seconds_sum{{{of},type=\"Q4_K_M\"}} 90"),
            "flexinfer_quantization_jobs_total{model=\"llama\",namespace=\"models\",\
             status=\"succeeded\"} 1"
                .to_owned(),
        ] {
            assert!(told.contains(&line), "{line} is not in {told:#?}");
        }
        quantizing.forget(&after.id, &after.model);
        assert!(!page(&registry).iter().any(|line| line.contains("_ratio{")));
    }

    #[test]
    fn a_job_that_failed_is_counted_once() {
        let registry = Registry::new();
        let quantizing = Quantizing::new(&registry).unwrap();
        let failed: ModelStatus = serde_json::from_value(json!({ "conditions": [{
            "type": "Cached", "status": "False", "reason": "QuantizationFailed", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }] }))
        .unwrap();
        quantizing.changed(&known_as(ModelStatus::default()), &failed);
        quantizing.changed(&known_as(failed.clone()), &failed);
        let line = "flexinfer_quantization_jobs_total{model=\"llama\",namespace=\"models\",\
                    status=\"failed\"} 1";
        assert_eq!(page(&registry), [line]);
    }
}
