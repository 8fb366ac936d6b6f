//! Benchmark results as ConfigMaps, with the keys and texts of the original: the scheduler looks them
//! up, and a cluster that changes over keeps what it has measured.

mod found;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use flexinfer_crds::keys;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

pub use found::{Found, found};

use super::said::amount;

const TOKENS_PER_SECOND: &str = "tokensPerSecond";

/// What was measured on what: results are found by all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Where the model is: another namespace may have one of the same name.
    pub namespace: String,
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
    /// The original's key of the result in the ConfigMap of all results: `bench_` and the first 16 bytes of the
    /// SHA-256 of `backend|model|deviceClass` in hex. Models of one name share it, whatever their namespaces.
    pub fn key(&self) -> String {
        key_of(&format!("{}|{}|{}", self.backend, self.model, self.device_class))
    }

    /// The key of the result that no other namespace's model has.
    pub fn own_key(&self) -> String {
        let Self { namespace, backend, model, device_class } = self;
        key_of(&format!("{namespace}|{backend}|{model}|{device_class}"))
    }

    /// The entries of this result in the ConfigMap of all results: under the original's key, where the last one
    /// stands of several namespaces, and under its own.
    pub fn entries(&self, measured: &Measured) -> BTreeMap<String, String> {
        let meta = Meta {
            namespace: &self.namespace,
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
        let entries = |key: String| {
            [(format!("meta_{key}"), meta.clone()), (key, rate(measured.tokens_per_second))]
        };
        [self.own_key(), self.key()].into_iter().flat_map(entries).collect()
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

/// The tokens per second in the ConfigMap of one deployment, as [`Subject::of_deployment`] writes it.
pub fn rate_of_deployment(results: &BTreeMap<String, String>) -> Option<f64> {
    amount(results.get(TOKENS_PER_SECOND)?.trim())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    namespace: &'a str,
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

fn key_of(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().take(16).fold(keys::BENCHMARK_KEY_PREFIX.to_owned(), |mut key, byte| {
        let _infallible = write!(key, "{byte:02x}");
        key
    })
}
