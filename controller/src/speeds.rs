//! How fast models are, as metrics: what was measured and how long loading took, under the original's names. A
//! series is there while an engine serves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flexinfer_core::ids::ModelId;
use flexinfer_core::planning::benchmarking::Measured;
use flexinfer_core::planning::model::serving_nodes;
use flexinfer_core::planning::status::last_load;
use flexinfer_crds::model::ModelStatus;
use parking_lot::Mutex;
use prometheus::{GaugeVec, Opts, Registry};

use crate::world::Member;

/// What a series tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Tokens,
    Load,
    Benchmark,
}

/// A kind with the values of its labels.
type Series = (Kind, Vec<String>);

/// The series of all models.
#[derive(Clone)]
pub(crate) struct Speeds {
    tokens: GaugeVec,
    load: GaugeVec,
    benchmark: GaugeVec,
    shown: Arc<Mutex<BTreeMap<ModelId, BTreeSet<Series>>>>,
}

impl Speeds {
    pub(crate) fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            let gauges = GaugeVec::new(Opts::new(name, help), labels)?;
            registry.register(Box::new(gauges.clone()))?;
            Ok::<_, prometheus::Error>(gauges)
        };
        Ok(Self {
            tokens: gauges(
                "flexinfer_tokens_per_second",
                "Tokens of answers per second, as a benchmark measured them on the node's kind.",
                &["model", "namespace", "backend", "node"],
            )?,
            load: gauges(
                "flexinfer_model_load_seconds",
                "From the making of the last pod to its readiness.",
                &["model", "namespace", "node"],
            )?,
            benchmark: gauges(
                "flexinfer_benchmark_duration_seconds",
                "How long it took to measure the model on the kind of node that serves it.",
                &["model", "namespace", "device_class"],
            )?,
            shown: Arc::default(),
        })
    }

    /// A pass over a member ended: tells what holds now, and nothing else of it.
    pub(crate) fn saw(&self, member: &Member, measured: Option<&Measured>, status: &ModelStatus) {
        let told = told(member, measured, status);
        let now: BTreeSet<Series> = told.keys().cloned().collect();
        let mut shown = self.shown.lock();
        let before = shown.remove(&member.id).unwrap_or_default();
        for (kind, labels) in before.difference(&now) {
            let _gone = self.of(*kind).remove_label_values(&texts(labels));
        }
        for ((kind, labels), value) in &told {
            self.of(*kind).with_label_values(&texts(labels)).set(*value);
        }
        if !now.is_empty() {
            shown.insert(member.id.clone(), now);
        }
    }

    /// A model is gone.
    pub(crate) fn forget(&self, model: &ModelId) {
        for (kind, labels) in self.shown.lock().remove(model).into_iter().flatten() {
            let _gone = self.of(kind).remove_label_values(&texts(&labels));
        }
    }

    fn of(&self, kind: Kind) -> &GaugeVec {
        match kind {
            Kind::Tokens => &self.tokens,
            Kind::Load => &self.load,
            Kind::Benchmark => &self.benchmark,
        }
    }
}

fn told(
    member: &Member,
    measured: Option<&Measured>,
    status: &ModelStatus,
) -> BTreeMap<Series, f64> {
    let series = |labels: &[&str]| {
        let own = [&*member.id.name, &*member.id.namespace];
        own.iter().chain(labels).map(|&label| label.to_owned()).collect::<Vec<_>>()
    };
    let mut told = BTreeMap::new();
    for node in serving_nodes(member.pods.iter().map(AsRef::as_ref)) {
        if let Some(measured) = measured {
            let labels = series(&[&member.model.spec.backend, node]);
            told.insert((Kind::Tokens, labels), measured.tokens_per_second);
        }
        if let Some(took) = last_load(Some(status)) {
            told.insert((Kind::Load, series(&[node])), took.as_secs_f64());
        }
    }
    let duration = measured.and_then(|found| Some((found, found.duration_seconds?)));
    if let Some((found, seconds)) = duration {
        told.insert((Kind::Benchmark, series(&[&found.class.to_string()])), seconds);
    }
    told
}

fn texts(labels: &[String]) -> Vec<&str> {
    labels.iter().map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use flexinfer_core::placement::benchmarks::DeviceClass;
    use flexinfer_crds::model::Metrics;
    use flexinfer_crds::{Model, ModelSpec};
    use serde_json::json;

    use super::*;

    /// `llama` with an engine on each of these nodes.
    fn serving(nodes: &[&str]) -> Member {
        let pod = |node: &&str| {
            let pod = json!({
                "metadata": { "name": node },
                "spec": { "nodeName": node, "containers": [] },
                "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
            });
            Arc::new(serde_json::from_value(pod).unwrap())
        };
        let spec = ModelSpec { backend: "vllm".into(), ..ModelSpec::default() };
        Member {
            pods: nodes.iter().map(pod).collect(),
            ..Member::bare("models", Model::new("llama", spec))
        }
    }

    fn page(registry: &Registry) -> Vec<String> {
        let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn what_is_known_is_told_under_the_originals_names_while_the_model_serves() {
        let registry = Registry::new();
        let speeds = Speeds::new(&registry).unwrap();
        let measured = Measured {
            class: DeviceClass::default(),
            tokens_per_second: 42.5,
            duration_seconds: Some(30.0),
            latency_ms: None,
            configuration: None,
            is_its_own: true,
        };
        let load = Metrics { load_time_seconds: Some("7.5".into()), ..Metrics::default() };
        let status = ModelStatus { metrics: Some(load), ..ModelStatus::default() };
        speeds.saw(&serving(&["a"]), Some(&measured), &status);
        let load = |node| {
            format!(
                "flexinfer_model_load_seconds{{model=\"llama\",namespace=\"models\",node=\"{node}\"}} 7.5"
            )
        };
        let [benchmark, tokens] = [
            "flexinfer_benchmark_duration_seconds{device_class=\"vendor=,arch=,vram=,count=,int4=\",\
             model=\"llama\",namespace=\"models\"} 30",
            "flexinfer_tokens_per_second{backend=\"vllm\",model=\"llama\",namespace=\"models\",\
             node=\"a\"} 42.5",
        ];
        assert_eq!(page(&registry), [benchmark.to_owned(), load("a"), tokens.to_owned()]);
        speeds.saw(&serving(&["b"]), None, &status);
        assert_eq!(page(&registry), [load("b")]);
        speeds.saw(&serving(&[]), None, &status);
        assert_eq!(page(&registry), [""; 0]);
    }
}
