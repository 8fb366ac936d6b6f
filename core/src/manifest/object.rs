//! From a document to a Model or an adapter: its metadata, its fields against the schema, and what is wrong with it as
//! a whole.

use flexinfer_crds::{GROUP, LoRAAdapter, Model, lora_adapter, model};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::complaint::{Notes, Place};
use super::envelope::{Document, Kind, VERSION};
use super::metadata;
use super::nearest::nearest;
use super::node::Node;
use super::schema as fields;
use crate::backends;
use crate::effective::Effective;
use crate::judging::{Judged, judge, judge_adapter};

/// The fields of an object.
const PARTS: [&str; 5] = ["apiVersion", "kind", "metadata", "spec", "status"];

/// The Model of `document`, unless it has a fault; all faults are told in `notes`.
pub(super) fn model(document: &Document<'_>, notes: &mut Notes) -> Option<(Model, Effective)> {
    let known = notes.errors.len();
    let model: Model = object(document, model::schema(), notes)?;
    let effective = meaning(&model, document.node, notes)?;
    (notes.errors.len() == known).then_some((model, effective))
}

/// The adapter of `document`, likewise.
pub(super) fn adapter(document: &Document<'_>, notes: &mut Notes) -> Option<LoRAAdapter> {
    let adapter = object(document, lora_adapter::schema(), notes)?;
    let complaints = judge_adapter(&adapter);
    tell(&complaints, document.node, notes);
    complaints.is_empty().then_some(adapter)
}

/// The object of `document`, whose fields are each in order.
fn object<K: DeserializeOwned>(
    document: &Document<'_>,
    schema: &'static Value,
    notes: &mut Notes,
) -> Option<K> {
    let (node, kind) = (document.node, document.kind.name());
    let known = notes.errors.len();
    for field in node.fields().iter().filter(|field| !PARTS.contains(&field.name.as_str())) {
        let hint = match nearest(&field.name, PARTS) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("what describes the {} stands under `spec`", document.kind.noun()),
        };
        notes.error(field.place, format!("{}: unknown field; {hint}", field.name));
    }
    let metadata = metadata::read(node, notes);
    let spec = spec(node, document.kind, schema, notes);
    if notes.errors.len() > known {
        return None;
    }
    let object = json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": kind,
        "metadata": metadata,
        "spec": spec?,
    });
    // The schema has been kept, so that an error says something new about the two.
    let read = serde_json::from_value(object);
    read.map_err(|error| notes.error(node.place_of(["spec"]), format!("spec: {error}"))).ok()
}

/// The spec as JSON, with its faults told.
fn spec(node: &Node, kind: Kind, schema: &'static Value, notes: &mut Notes) -> Option<Value> {
    let spec_schema = schema.get("properties")?.get("spec")?;
    let Some(spec) = node.field("spec") else {
        let message = format!("spec is missing; say at least {}", kind.least());
        notes.error(node.place, message);
        return None;
    };
    fields::check(spec_schema, &spec.node, "spec", notes);
    let Value::Object(mut json) = spec.node.to_json(false) else { return None };
    // Only in the free options does a null say something.
    if let Some(config) = spec.node.field("config") {
        json.insert("config".to_owned(), config.node.to_json(true));
    }
    Some(Value::Object(json))
}

/// What a Model means whose fields are each in order; what is wrong with it as a whole is told.
fn meaning(model: &Model, node: &Node, notes: &mut Notes) -> Option<Effective> {
    let Judged { effective, broken, complaints } = judge(model);
    for broken in broken {
        let path = std::iter::once("spec").chain(broken.field.iter().copied());
        notes.error(node.place_of(path), format!("spec: {}", broken.message));
    }
    tell(&complaints, node, notes);
    effective
}

fn tell(complaints: &[backends::Complaint], node: &Node, notes: &mut Notes) {
    for complaint in complaints {
        let place = place_of(complaint, node);
        if complaint.warning {
            notes.warning(place, complaint.to_string());
        } else {
            notes.error(place, complaint.to_string());
        }
    }
}

/// The place of the field that a complaint names, or of the nearest one around it.
fn place_of(complaint: &backends::Complaint, node: &Node) -> Place {
    let mut steps: Vec<&str> = Vec::new();
    for part in complaint.field.split('[') {
        // A key in brackets may have points of its own.
        let names = match part.split_once(']') {
            Some((key, names)) => {
                steps.push(key);
                names
            }
            None => part,
        };
        steps.extend(names.split('.').filter(|name| !name.is_empty()));
    }
    node.place_of(steps)
}
