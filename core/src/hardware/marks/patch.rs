//! The one patch from what a node carries to what it shall carry.

use std::collections::BTreeMap;

use flexinfer_crds::keys;
use serde_json::{Map, Value, json};

use super::{Marks, Node, Texts};

/// The merge patch that makes `node` carry `wanted`; `None` if it does. Only keys that differ are in it.
pub fn patch(node: &Node, wanted: &Marks) -> Option<Value> {
    let mut metadata = Map::new();
    let texts = [
        ("labels", &node.labels, &wanted.labels),
        ("annotations", &node.annotations, &wanted.annotations),
    ];
    for (name, known, wanted) in texts {
        let changes = changes(known, wanted);
        if !changes.is_empty() {
            metadata.insert(name.to_owned(), Value::Object(changes));
        }
    }
    let mut patch = Map::new();
    if let Some(taints) = taints(node, wanted.tainted) {
        patch.insert("spec".to_owned(), json!({ "taints": taints }));
        // A merge patch replaces the whole list; the version keeps it from undoing somebody else's change.
        if let Some(version) = &node.resource_version {
            metadata.insert("resourceVersion".to_owned(), json!(version));
        }
    }
    if !metadata.is_empty() {
        patch.insert("metadata".to_owned(), Value::Object(metadata));
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

fn changes(known: &BTreeMap<String, String>, wanted: &Texts) -> Map<String, Value> {
    let differs = wanted.iter().filter(|(key, value)| known.get(*key) != value.as_ref());
    differs.map(|(key, value)| (key.clone(), json!(value))).collect()
}

/// The node's taints with or without ours; `None` if they are as they shall be.
fn taints(node: &Node, tainted: Option<bool>) -> Option<Vec<Value>> {
    let ours =
        |taint: &Value| taint.get("key").and_then(Value::as_str) == Some(keys::SPOT_TERMINATING);
    let wanted = tainted?;
    if wanted == node.taints.iter().any(ours) {
        return None;
    }
    let mut taints: Vec<Value> = node.taints.iter().filter(|taint| !ours(taint)).cloned().collect();
    if wanted {
        taints
            .push(json!({"key": keys::SPOT_TERMINATING, "value": "true", "effect": "NoSchedule"}));
    }
    Some(taints)
}
