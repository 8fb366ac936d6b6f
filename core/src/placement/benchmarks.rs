//! Benchmark results as ConfigMaps, with the keys and texts of the original: the scheduler looks them
//! up, and a cluster that changes over keeps what it has measured.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use flexinfer_crds::keys;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::said::amount;

const TOKENS_PER_SECOND: &str = "tokensPerSecond";

/// What was measured on what: results are found by all three.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The backend, as the pod's label has it.
    pub backend: String,
    /// The model, as `spec.source` or the benchmark's `--model` names it.
    pub model: String,
    /// The kind of node.
    pub device_class: DeviceClass,
}

/// A kind of node: nodes of one class are taken to be equally fast.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DeviceClass {
    vendor: String,
    architecture: String,
    vram: String,
    count: String,
    int4: String,
}

/// One result.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Tokens of answers per second of the measurement.
    pub tokens_per_second: f64,
    /// Tokens of all answers.
    pub completion_tokens: u64,
    /// How long the measurement took, in seconds.
    pub duration_seconds: f64,
    /// Requests that were measured.
    pub samples: u64,
    /// Milliseconds to the end of an answer, on average; `None` where none ended.
    pub latency_ms: Option<f64>,
    /// When it ended: RFC 3339, UTC.
    pub timestamp: String,
    /// What determined the speed beside the kind of node, as a hash; `None` where nobody said.
    pub configuration: Option<String>,
}

/// How it was measured, for the ConfigMap of one deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// Requests before the measured ones.
    pub warmup_iterations: u64,
    /// Requests that were measured at least.
    pub iterations: u64,
    /// Tokens asked for with each.
    pub batch_size: u64,
    /// How long was measured at least, as the flag had it.
    pub min_duration: String,
}

impl DeviceClass {
    /// The class of the node with these labels. A label that is missing counts as empty.
    pub fn of_node(labels: &BTreeMap<String, String>) -> Self {
        let label = |key: &str| labels.get(key).cloned().unwrap_or_default();
        let architecture = match label(keys::GPU_ARCHITECTURE) {
            none if none.is_empty() => label(keys::GPU_ARCHITECTURE_OLDER),
            architecture => architecture,
        };
        Self {
            vendor: label(keys::GPU_VENDOR),
            architecture,
            vram: label(keys::GPU_VRAM),
            count: label(keys::GPU_COUNT),
            int4: label(keys::GPU_INT4),
        }
    }
}

impl DeviceClass {
    /// The architecture of its GPUs; empty if it is not known.
    pub fn architecture(&self) -> &str {
        &self.architecture
    }
}

impl fmt::Display for DeviceClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vendor, architecture, vram, count, int4 } = self;
        write!(
            formatter,
            "vendor={vendor},arch={architecture},vram={vram},count={count},int4={int4}"
        )
    }
}

impl Subject {
    /// The key of the result in the ConfigMap of all results: `bench_` and the first 16 bytes of the
    /// SHA-256 of `backend|model|deviceClass` in hex.
    pub fn key(&self) -> String {
        let text = format!("{}|{}|{}", self.backend, self.model, self.device_class);
        let digest = Sha256::digest(text);
        digest.iter().take(16).fold("bench_".to_owned(), |mut key, byte| {
            let _infallible = write!(key, "{byte:02x}");
            key
        })
    }

    /// The entries of this result in the ConfigMap of all results.
    pub fn entries(&self, measured: &Measured) -> BTreeMap<String, String> {
        let meta = Meta {
            backend: &self.backend,
            model: &self.model,
            device_class: self.device_class.to_string(),
            tokens_per_second: measured.tokens_per_second,
            completion_tokens: measured.completion_tokens,
            duration_seconds: measured.duration_seconds,
            samples: measured.samples,
            avg_latency_ms: measured.latency_ms,
            timestamp: &measured.timestamp,
            configuration: measured.configuration.as_deref(),
        };
        let meta = serde_json::to_string(&meta).unwrap_or_default();
        let key = self.key();
        BTreeMap::from([(format!("meta_{key}"), meta), (key, rate(measured.tokens_per_second))])
    }

    /// The ConfigMap `<deployment>-benchmark-results` of this result.
    pub fn of_deployment(&self, measured: &Measured, method: &Method) -> BTreeMap<String, String> {
        let entries = [
            (TOKENS_PER_SECOND, rate(measured.tokens_per_second)),
            ("model", self.model.clone()),
            ("backend", self.backend.clone()),
            ("warmupIterations", method.warmup_iterations.to_string()),
            ("iterations", method.iterations.to_string()),
            ("batchSize", method.batch_size.to_string()),
            ("minDuration", method.min_duration.clone()),
            ("completionTokens", measured.completion_tokens.to_string()),
            ("durationSeconds", rate(measured.duration_seconds)),
            ("samples", measured.samples.to_string()),
            ("timestamp", measured.timestamp.clone()),
        ];
        entries.map(|(key, value)| (key.to_owned(), value)).into()
    }
}

/// The tokens per second that `subject` has in the ConfigMap of all results; `None` for a result that
/// is missing or not a number that a measurement can have.
pub fn tokens_per_second(results: &BTreeMap<String, String>, subject: &Subject) -> Option<f64> {
    amount(results.get(&subject.key())?.trim())
}

/// How long the measurement of `subject` took, in seconds, by the ConfigMap of all results.
pub fn duration_seconds(results: &BTreeMap<String, String>, subject: &Subject) -> Option<f64> {
    number(results, subject, "durationSeconds")
}

/// How many milliseconds an answer of `subject` took on average, by the ConfigMap of all results; `None` also where
/// nobody noted it, as the original did not.
pub fn latency_ms(results: &BTreeMap<String, String>, subject: &Subject) -> Option<f64> {
    number(results, subject, "avgLatencyMs")
}

/// What determined the speed of `subject` when it was measured, as a hash; `None` also where nobody noted it, as the
/// original did not.
pub fn configuration(results: &BTreeMap<String, String>, subject: &Subject) -> Option<String> {
    noted(results, subject, "configuration")?.as_str().map(str::to_owned)
}

/// A number that was noted beside a result.
fn number(results: &BTreeMap<String, String>, subject: &Subject, key: &str) -> Option<f64> {
    noted(results, subject, key)?.as_f64().filter(|number| *number >= 0.0)
}

/// What was noted beside a result.
fn noted(results: &BTreeMap<String, String>, subject: &Subject, key: &str) -> Option<Value> {
    let meta = results.get(&format!("meta_{}", subject.key()))?;
    let meta: Value = serde_json::from_str(meta).ok()?;
    meta.get(key).cloned()
}

/// The tokens per second in the ConfigMap of one deployment, as [`Subject::of_deployment`] writes it.
pub fn rate_of_deployment(results: &BTreeMap<String, String>) -> Option<f64> {
    amount(results.get(TOKENS_PER_SECOND)?.trim())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    backend: &'a str,
    model: &'a str,
    device_class: String,
    tokens_per_second: f64,
    completion_tokens: u64,
    duration_seconds: f64,
    samples: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    avg_latency_ms: Option<f64>,
    timestamp: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<&'a str>,
}

/// Two places behind the point: more than a measurement is good for.
fn rate(number: f64) -> String {
    format!("{number:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject() -> Subject {
        let labels = [
            (keys::GPU_VENDOR, "NVIDIA"),
            (keys::GPU_ARCHITECTURE, "sm_89"),
            (keys::GPU_VRAM, "24Gi"),
            (keys::GPU_COUNT, "2"),
            (keys::GPU_INT4, "true"),
        ];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        Subject {
            backend: "vllm".to_owned(),
            model: "org/name".to_owned(),
            device_class: DeviceClass::of_node(&labels),
        }
    }

    fn measured() -> Measured {
        Measured {
            tokens_per_second: 49.996,
            completion_tokens: 640,
            duration_seconds: 12.8,
            samples: 5,
            latency_ms: Some(2560.0),
            timestamp: "2026-01-02T03:04:05Z".to_owned(),
            configuration: Some("c0ffee".to_owned()),
        }
    }

    #[test]
    fn the_key_is_the_beginning_of_the_digest_of_backend_model_and_class() {
        let subject = subject();
        assert_eq!(
            subject.device_class.to_string(),
            "vendor=NVIDIA,arch=sm_89,vram=24Gi,count=2,int4=true"
        );
        // printf 'vllm|org/name|vendor=NVIDIA,arch=sm_89,vram=24Gi,count=2,int4=true' | sha256sum
        assert_eq!(subject.key(), "bench_dc65cca78c40f372a562c8c35a1198d7");
    }

    #[test]
    fn a_node_without_labels_is_a_class_of_its_own_and_the_older_label_counts() {
        assert_eq!(
            DeviceClass::default().to_string(),
            "vendor=,arch=,vram=,count=,int4=",
            "every part is named"
        );
        let older = [(keys::GPU_ARCHITECTURE_OLDER.to_owned(), "gfx1100".to_owned())];
        let class = DeviceClass::of_node(&older.into());
        assert!(class.to_string().contains("arch=gfx1100"));
    }

    #[test]
    fn a_result_is_found_again_by_its_subject_alone() {
        let entries = subject().entries(&measured());
        assert_eq!(tokens_per_second(&entries, &subject()), Some(50.0));
        let other = Subject { model: "org/other".to_owned(), ..subject() };
        assert_eq!(tokens_per_second(&entries, &other), None);
        assert_eq!(duration_seconds(&entries, &subject()), Some(12.8));
        assert_eq!(duration_seconds(&entries, &other), None);
        assert_eq!(latency_ms(&entries, &subject()), Some(2560.0));
        assert_eq!(configuration(&entries, &subject()).as_deref(), Some("c0ffee"));
        let meta = entries.get(&format!("meta_{}", subject().key())).unwrap();
        let meta = serde_json::from_str::<Value>(meta).unwrap();
        assert_eq!(meta["deviceClass"], subject().device_class.to_string());
        assert_eq!(meta["completionTokens"], 640);
    }

    #[test]
    fn a_result_of_the_originals_says_nothing_of_answers() {
        let original = r#"{"tokensPerSecond":50.0,"durationSeconds":12.8}"#.to_owned();
        let entries = BTreeMap::from([(format!("meta_{}", subject().key()), original)]);
        assert_eq!(latency_ms(&entries, &subject()), None);
        assert_eq!(configuration(&entries, &subject()), None);
        let none = Measured { latency_ms: None, configuration: None, ..measured() };
        let says = |what| subject().entries(&none).into_values().any(|entry| entry.contains(what));
        assert!(!says("avgLatency") && !says("configuration"), "what nobody has measured");
    }

    #[test]
    fn garbage_in_the_results_is_no_rate() {
        for garbage in ["", "fast", "NaN", "inf", "-1"] {
            let entries = BTreeMap::from([(subject().key(), garbage.to_owned())]);
            assert_eq!(tokens_per_second(&entries, &subject()), None, "{garbage:?}");
        }
    }

    #[test]
    fn the_map_of_a_deployment_has_the_originals_keys() {
        let method = Method {
            warmup_iterations: 2,
            iterations: 5,
            batch_size: 128,
            min_duration: "30s".to_owned(),
        };
        let map = subject().of_deployment(&measured(), &method);
        let keys = map.keys().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(
            keys,
            [
                "backend",
                "batchSize",
                "completionTokens",
                "durationSeconds",
                "iterations",
                "minDuration",
                "model",
                "samples",
                "timestamp",
                "tokensPerSecond",
                "warmupIterations",
            ]
        );
        assert_eq!(map["tokensPerSecond"], "50.00");
    }
}
