//! Models as Ollama's clients list and show them. What only the engine of a model could tell (the size
//! of its weights, its family) is left empty rather than asked for.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{Entry, stamp, written};
use crate::backends::Api;
use crate::rejection::Rejection;

/// The version of Ollama whose API is followed: clients refuse to talk to one that is too old.
pub const VERSION: &str = "0.12.0";

#[derive(Serialize)]
struct List<'a> {
    models: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Item<'a> {
    name: &'a str,
    model: &'a str,
    modified_at: String,
    size: u64,
    digest: String,
    details: Details<'a>,
}

#[derive(Serialize)]
struct Details<'a> {
    parent_model: &'a str,
    format: &'a str,
    family: &'a str,
    families: [&'a str; 1],
    parameter_size: &'a str,
    quantization_level: &'a str,
}

impl<'a> Details<'a> {
    fn of(entry: &Entry<'a>) -> Self {
        let family = entry.model.backend.as_str();
        Self {
            parent_model: entry.adapter.map_or("", |_| entry.model.name()),
            format: "",
            family,
            families: [family],
            parameter_size: "",
            quantization_level: "",
        }
    }
}

impl<'a> Item<'a> {
    fn of(entry: &Entry<'a>) -> Self {
        Self {
            name: entry.id,
            model: entry.id,
            modified_at: stamp(entry.created()),
            size: 0,
            digest: digest(entry),
            details: Details::of(entry),
        }
    }
}

pub(super) fn list(entries: &[Entry<'_>]) -> Vec<u8> {
    written(&List { models: entries.iter().map(Item::of).collect() })
}

/// Tells models apart, as clients expect of it: they show its first 12 digits.
fn digest(entry: &Entry<'_>) -> String {
    let mut digits = String::with_capacity(64);
    let model = entry.model;
    let whole = format!("{} {} {}", model.effective.id, entry.id, model.source);
    for byte in Sha256::digest(whole) {
        // Writing to a String cannot fail.
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

#[derive(Serialize)]
struct Shown<'a> {
    modelfile: &'static str,
    parameters: &'static str,
    template: &'static str,
    modified_at: String,
    details: Details<'a>,
    model_info: BTreeMap<String, Value>,
    capabilities: Vec<&'static str>,
}

pub(super) fn show(entry: &Entry<'_>) -> Vec<u8> {
    let model = entry.model;
    let mut model_info =
        BTreeMap::from([("general.architecture".into(), model.backend.as_str().into())]);
    if let Some(window) = model.effective.context_window {
        model_info.insert(format!("{}.context_length", model.backend), window.into());
    }
    let capability = |(api, name)| model.serves(api).then_some(name);
    let capabilities = [(Api::Chat, "completion"), (Api::Embeddings, "embedding")];
    written(&Shown {
        modelfile: "",
        parameters: "",
        template: "",
        modified_at: stamp(entry.created()),
        details: Details::of(entry),
        model_info,
        capabilities: capabilities.into_iter().filter_map(capability).collect(),
    })
}

pub(super) fn version() -> Vec<u8> {
    written(&BTreeMap::from([("version", VERSION)]))
}

/// The body of a request to show a model.
#[derive(Deserialize)]
pub struct Show {
    #[serde(default)]
    model: String,
    /// What older clients call it.
    #[serde(default)]
    name: String,
}

impl Show {
    /// The model that `body` asks to see.
    pub fn read(body: &[u8]) -> Result<String, Rejection> {
        let show: Self = serde_json::from_slice(body)
            .map_err(|error| Rejection::InvalidJson { problem: error.to_string() })?;
        let named = [show.model, show.name].into_iter().find(|name| !name.is_empty());
        named.ok_or(Rejection::ModelMissing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::tests::served;

    fn json(body: &[u8]) -> Value {
        serde_json::from_slice(body).expect("JSON")
    }

    #[test]
    fn models_are_listed_under_the_names_they_answer_to() {
        let models = [served("default", "llama", &[]), served("default", "org/qwen", &[])];
        let entries: Vec<_> = models.iter().map(Entry::model).collect();
        let body = json(&list(&entries));
        assert_eq!(body["models"][1]["name"], "org/qwen");
        assert_eq!(body["models"][1]["model"], "org/qwen");
        assert_eq!(body["models"][0]["modified_at"], "2023-11-14T22:13:20Z");
        assert_ne!(body["models"][0]["digest"], body["models"][1]["digest"]);
        assert_eq!(body["models"][0]["digest"].as_str().map(str::len), Some(64));
        assert_eq!(json(&list(&[]))["models"], Value::Array(Vec::new()));
    }

    #[test]
    fn a_model_is_shown_with_what_it_can_do() {
        let mut model = served("default", "llama", &[]);
        model.effective.context_window = Some(8192);
        let shown = json(&show(&Entry::model(&model)));
        assert_eq!(shown["model_info"]["simulator.context_length"], 8192);
        assert_eq!(shown["capabilities"], serde_json::json!(["completion", "embedding"]));
    }

    #[test]
    fn a_model_to_be_shown_is_named_in_either_field() {
        assert_eq!(Show::read(br#"{"model":"m"}"#), Ok("m".into()));
        assert_eq!(Show::read(br#"{"name":"m","verbose":true}"#), Ok("m".into()));
        assert_eq!(Show::read(b"{}"), Err(Rejection::ModelMissing));
        assert!(matches!(Show::read(b"m"), Err(Rejection::InvalidJson { .. })));
        assert!(matches!(Show::read(br#"{"model":7}"#), Err(Rejection::InvalidJson { .. })));
    }
}
