//! Which fields of an object are this controller's, by the account that the API server keeps of who wrote what
//! (`managedFields`): a field that somebody else changed since is theirs there, whoever watched and whoever was away.

use flexinfer_crds::keys;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use serde::Serialize;
use serde_json::{Map, Value};

/// What is said of an object as a whole, which nobody owns.
const NAMES: [&str; 4] = ["apiVersion", "kind", "name", "namespace"];

/// Whether every field of `wanted` is still as this controller applied it, by the entries of the object that there is.
pub fn owns_all(wanted: &impl Serialize, entries: &[ManagedFieldsEntry]) -> bool {
    let mut wanted = serde_json::to_value(wanted).unwrap_or_default();
    for part in ["", "/metadata"] {
        if let Some(part) = wanted.pointer_mut(part).and_then(Value::as_object_mut) {
            part.retain(|name, _| !NAMES.contains(&name.as_str()));
        }
    }
    within(&wanted, &applied(entries))
}

/// Whether this controller's applies own `replicas`.
pub fn owns_replicas(entries: &[ManagedFieldsEntry]) -> bool {
    applied(entries).pointer("/f:spec/f:replicas").is_some()
}

/// The entries with what this controller wrote by updates, as older ones did, counted as applied; `None` where there
/// is nothing of that. What is applied next without a field then removes it, where two accounts of the same program
/// would keep it for ever (K8S-10). How many replicas there are is set by an update now and then, and stays so.
pub fn as_applied(entries: &[ManagedFieldsEntry]) -> Option<Vec<ManagedFieldsEntry>> {
    let updated = |entry: &&ManagedFieldsEntry| is_ours(entry, "Update") && has_more(entry);
    let first = entries.iter().find(updated)?;
    let mut fields = applied(entries);
    for entry in entries.iter().filter(updated) {
        merge(&mut fields, fields_of(entry));
    }
    let ours = ManagedFieldsEntry {
        operation: Some("Apply".to_owned()),
        fields_v1: Some(FieldsV1(fields)),
        ..first.clone()
    };
    let others = entries.iter().filter(|entry| !updated(entry) && !is_ours(entry, "Apply"));
    Some(others.cloned().chain([ours]).collect())
}

fn is_ours(entry: &ManagedFieldsEntry, operation: &str) -> bool {
    entry.manager.as_deref() == Some(keys::FIELD_MANAGER)
        && entry.operation.as_deref() == Some(operation)
        && entry.subresource.as_ref().is_none_or(String::is_empty)
}

fn fields_of(entry: &ManagedFieldsEntry) -> Value {
    entry.fields_v1.as_ref().map(|fields| fields.0.clone()).unwrap_or_default()
}

/// Whether an entry has anything but replicas.
fn has_more(entry: &ManagedFieldsEntry) -> bool {
    let mut fields = fields_of(entry);
    if let Some(spec) = fields.get_mut("f:spec").and_then(Value::as_object_mut) {
        spec.remove("f:replicas");
        spec.remove(".");
    }
    let fields = fields.as_object();
    fields.is_some_and(|fields| fields.iter().any(|(name, of)| name != "f:spec" || !is_leaf(of)))
}

/// What this controller applied.
fn applied(entries: &[ManagedFieldsEntry]) -> Value {
    let mut all = Value::Object(Map::new());
    for entry in entries.iter().filter(|entry| is_ours(entry, "Apply")) {
        merge(&mut all, fields_of(entry));
    }
    all
}

fn merge(into: &mut Value, from: Value) {
    let (Value::Object(into), Value::Object(from)) = (into, from) else { return };
    for (name, of) in from {
        match into.get_mut(&name) {
            Some(known) => merge(known, of),
            None => {
                into.insert(name, of);
            }
        }
    }
}

/// Whether the server takes what is below as one: it says nothing of its parts.
fn is_leaf(owned: &Value) -> bool {
    owned.as_object().is_none_or(Map::is_empty)
}

fn is_empty(wanted: &Value) -> bool {
    match wanted {
        Value::Null => true,
        Value::Array(all) => all.is_empty(),
        Value::Object(all) => all.is_empty(),
        _ => false,
    }
}

fn within(wanted: &Value, owned: &Value) -> bool {
    let whole = is_leaf(owned);
    match wanted {
        Value::Object(fields) => fields.iter().filter(|(_, of)| !is_empty(of)).all(|(name, of)| {
            let part = owned.get(format!("f:{name}"));
            part.is_some_and(|part| is_leaf(part) || within(of, part))
        }),
        Value::Array(all) => whole || all.iter().all(|one| is_among(one, owned)),
        _ => true,
    }
}

/// Whether the element `wanted` of a list is owned with all that is in it.
fn is_among(wanted: &Value, owned: &Value) -> bool {
    owned.as_object().into_iter().flatten().any(|(name, part)| {
        if let Some(value) = name.strip_prefix("v:").and_then(parsed) {
            return value == *wanted;
        }
        let Some(Value::Object(keys)) = name.strip_prefix("k:").and_then(parsed) else {
            return false;
        };
        // A key that is not said has its default.
        let named = |(key, value): (&String, &Value)| wanted.get(key).is_none_or(|is| is == value);
        keys.iter().all(named) && (is_leaf(part) || within(wanted, part))
    })
}

fn parsed(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, operation: &str, fields: Value) -> ManagedFieldsEntry {
        ManagedFieldsEntry {
            manager: Some(manager.to_owned()),
            operation: Some(operation.to_owned()),
            fields_v1: Some(FieldsV1(fields)),
            ..ManagedFieldsEntry::default()
        }
    }

    fn ours(fields: Value) -> ManagedFieldsEntry {
        entry(keys::FIELD_MANAGER, "Apply", fields)
    }

    fn wanted() -> Value {
        json!({
            "apiVersion": "apps/v1",
            "metadata": { "name": "m", "labels": { "a/b": "c" }, "finalizers": ["f"] },
            "spec": {
                "replicas": 1,
                "selector": { "matchLabels": { "a": "b" } },
                "template": { "spec": { "tolerations": [{ "key": "x" }], "volumes": [], "containers": [
                    { "name": "model", "image": "x:1", "ports": [{ "containerPort": 80 }] },
                ] } },
            },
        })
    }

    fn owned() -> Value {
        json!({
            "f:metadata": { "f:labels": { "f:a/b": {} }, "f:finalizers": { "v:\"f\"": {} } },
            "f:spec": {
                "f:replicas": {},
                "f:selector": {},
                "f:template": { "f:spec": { "f:tolerations": {}, "f:containers": {
                    "k:{\"name\":\"model\"}": { ".": {}, "f:name": {}, "f:image": {}, "f:ports": {
                        "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": { ".": {}, "f:containerPort": {} },
                    } },
                } } },
            },
        })
    }

    #[test]
    fn what_was_applied_and_nobody_changed_is_all_there() {
        assert!(owns_all(&wanted(), &[ours(owned())]));
        assert!(owns_replicas(&[ours(owned())]));
    }

    /// Without what is at `place`, and without what has nothing left in it, as the server writes it.
    fn remove(fields: &mut Value, place: &str) {
        let (above, name) = place.rsplit_once('/').unwrap();
        let around = fields.pointer_mut(above).unwrap().as_object_mut().unwrap();
        around.remove(&name.replace("~1", "/")).unwrap();
        if around.is_empty() {
            remove(fields, above);
        }
    }

    #[test]
    fn a_field_that_somebody_changed_or_took_away_is_missing() {
        for gone in [
            "/f:metadata/f:labels/f:a~1b",
            "/f:metadata/f:finalizers/v:\"f\"",
            "/f:spec/f:replicas",
            "/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"model\"}/f:image",
            "/f:spec/f:template/f:spec/f:containers/k:{\"name\":\"model\"}",
            "/f:spec/f:template/f:spec/f:tolerations",
            "/f:spec/f:selector",
        ] {
            let mut changed = owned();
            remove(&mut changed, gone);
            let theirs = entry("kubectl-edit", "Update", json!({ "f:spec": { "f:replicas": {} } }));
            assert!(!owns_all(&wanted(), &[ours(changed), theirs]), "{gone}");
        }
        assert!(!owns_all(&wanted(), &[]));
    }

    #[test]
    fn k8s_10_what_was_written_by_updates_is_counted_as_applied() {
        let updated = json!({ "f:spec": { "f:replicas": {}, "f:paused": {} } });
        let theirs = entry("kubectl-edit", "Update", json!({ "f:spec": { "f:paused": {} } }));
        let of_status = ManagedFieldsEntry {
            subresource: Some("status".to_owned()),
            ..entry(keys::FIELD_MANAGER, "Update", json!({ "f:status": {} }))
        };
        let known = json!({ "f:spec": { "f:selector": {} } });
        let entries = [
            ours(known),
            entry(keys::FIELD_MANAGER, "Update", updated),
            theirs.clone(),
            of_status.clone(),
        ];
        let all = json!({ "f:spec": { "f:selector": {}, "f:replicas": {}, "f:paused": {} } });
        assert_eq!(as_applied(&entries), Some(vec![theirs, of_status, ours(all)]));
    }

    #[test]
    fn replicas_alone_are_set_by_updates() {
        let scaled =
            entry(keys::FIELD_MANAGER, "Update", json!({ "f:spec": { "f:replicas": {} } }));
        assert_eq!(as_applied(&[ours(owned()), scaled]), None);
    }
}
