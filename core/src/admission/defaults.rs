//! What is written into a Model that its author left open: only what decides between Models of different people, so
//! that each can be seen in all of them, and means the same after an upgrade. Everything else stays open, since the
//! backend or a setting says it, or since it would stand in the way of a later edit: see
//! `docs/decisions/0019-defaults-at-the-door.md`.

use serde_json::{Map, Value, json};

use super::review::{BadReview, Operation, Question};
use crate::effective::{PRIORITY, SWAP_COOLDOWN};

/// The answer to the question in `body`, with what is to be written. What is not understood is left to validation.
pub fn set_defaults(body: &[u8]) -> Result<Value, BadReview> {
    let question = Question::read(body)?;
    let asked = matches!(question.operation, Operation::Create | Operation::Update);
    if !asked || question.kind.kind != "Model" || question.is_leaving() {
        return Ok(question.allowed(&[]));
    }
    let gpu = question.object.pointer("/spec/gpu").and_then(Value::as_object);
    let patch = gpu.filter(|gpu| shares(gpu)).map(of_sharing).unwrap_or_default();
    Ok(question.patched(&patch))
}

fn shares(gpu: &Map<String, Value>) -> bool {
    let text = |field: &str| gpu.get(field).and_then(Value::as_str).map(str::trim);
    text("shared").is_some_and(|group| !group.is_empty()) && text("vendor") != Some("cpu")
}

fn of_sharing(gpu: &Map<String, Value>) -> Vec<Value> {
    [("priority", json!(PRIORITY)), ("swapCooldown", json!(SWAP_COOLDOWN.to_string()))]
        .into_iter()
        .filter(|(field, _)| gpu.get(*field).is_none_or(Value::is_null))
        .map(|(field, value)| json!({ "op": "add", "path": format!("/spec/gpu/{field}"), "value": value }))
        .collect()
}
