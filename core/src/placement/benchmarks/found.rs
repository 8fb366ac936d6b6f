//! Results as they are found again, and whose they are.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Subject;
use crate::placement::said::amount;

/// A result that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Tokens of answers per second.
    pub tokens_per_second: f64,
    /// What was noted beside it.
    noted: Value,
}

/// What the ConfigMap of all `results` has of `subject`; `None` where nothing is, or nothing that a measurement can
/// have, or only what was measured of another namespace's model.
pub fn found(results: &BTreeMap<String, String>, subject: &Subject) -> Option<Found> {
    let under = |key: String| {
        let tokens_per_second = amount(results.get(&key)?.trim())?;
        Some(Found { tokens_per_second, noted: noted(results, &key) })
    };
    let may_be_its =
        |found: &Found| found.namespace().is_none_or(|namespace| namespace == subject.namespace);
    under(subject.own_key()).or_else(|| under(subject.key()).filter(may_be_its))
}

impl Found {
    /// Where the model is that was measured; `None` where nobody noted it, as the original did not.
    pub fn namespace(&self) -> Option<&str> {
        self.noted.get("namespace")?.as_str()
    }

    /// How long the measurement took, in seconds.
    pub fn duration_seconds(&self) -> Option<f64> {
        self.number("durationSeconds")
    }

    /// How many milliseconds an answer took on average; `None` also where nobody noted it, as the original did not.
    pub fn latency_ms(&self) -> Option<f64> {
        self.number("avgLatencyMs")
    }

    /// What determined the speed when it was measured, as a hash; `None` also where nobody noted it, as the original
    /// did not.
    pub fn configuration(&self) -> Option<&str> {
        self.noted.get("configuration")?.as_str()
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.noted.get(key)?.as_f64().filter(|number| *number >= 0.0)
    }
}

/// What was noted beside the result under `key`.
fn noted(results: &BTreeMap<String, String>, key: &str) -> Value {
    let noted = results.get(&format!("meta_{key}"));
    noted.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}
