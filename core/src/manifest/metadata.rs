//! The metadata of an object in a file: what a person writes is kept, what a cluster wrote is left
//! out, and anything else is refused.

use serde_json::{Map, Value, json};

use super::complaint::{Notes, Place};
use super::nearest::nearest;
use super::node::{Content, Field, Node};
use super::value;

/// What a person writes.
const WRITTEN: [&str; 4] = ["name", "namespace", "labels", "annotations"];

/// What a cluster adds, in a file that came from one.
const ADDED: [&str; 10] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "finalizers",
    "ownerReferences",
    "managedFields",
    "selfLink",
];

/// The longest name of an object, and of a namespace.
const LONGEST_NAME: usize = 253;
const LONGEST_NAMESPACE: usize = 63;

/// The metadata of `object` as JSON, with its faults told in `notes`.
pub(super) fn read(object: &Node, notes: &mut Notes) -> Value {
    let Some(metadata) = object.field("metadata") else {
        notes.error(object.place, "metadata is missing; write `metadata: {name: my-model}`");
        return Value::Null;
    };
    if !matches!(metadata.node.content, Content::Object(_)) {
        notes.error(metadata.place, "metadata: must be an object with at least a name");
        return Value::Null;
    }
    for field in metadata.node.fields() {
        let name = field.name.as_str();
        if !WRITTEN.contains(&name) && !ADDED.contains(&name) {
            let hint = match nearest(name, WRITTEN) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("known are {}", WRITTEN.join(", ")),
            };
            notes.error(field.place, format!("metadata.{name}: unknown field; {hint}"));
        }
    }
    let name = name(&metadata.node, "name", LONGEST_NAME, true, notes);
    if name.is_none() && metadata.node.field("name").is_none() {
        notes.error(metadata.place, "metadata.name: missing; give the model a name");
    }
    json!({
        "name": name,
        "namespace": self::name(&metadata.node, "namespace", LONGEST_NAMESPACE, false, notes),
        "labels": texts(&metadata.node, "labels", notes),
        "annotations": texts(&metadata.node, "annotations", notes),
    })
}

fn name(node: &Node, field: &str, longest: usize, dots: bool, notes: &mut Notes) -> Option<String> {
    let field = node.field(field)?;
    let Content::Scalar(scalar) = &field.node.content else {
        let found = value::described(&field.node);
        notes.error(field.place, format!("metadata.{}: must be a name, not {found}", field.name));
        return None;
    };
    let text = scalar.text.as_str();
    if !scalar.to_json().is_string() {
        refuse(field, &format!("must be a text; put it in quotes: \"{text}\""), notes);
        return None;
    }
    let allowed =
        |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    let well_formed = text.len() <= longest
        && text.split('.').all(|part| {
            !part.is_empty()
                && part.chars().all(allowed)
                && !part.starts_with('-')
                && !part.ends_with('-')
        })
        && (dots || !text.contains('.'));
    if well_formed {
        return Some(text.to_owned());
    }
    let dots = if dots { ", `.`" } else { "" };
    let message = format!(
        "`{text}` cannot be a name; write up to {longest} lower-case letters, digits{dots} and `-`, \
         with a letter or digit at both ends"
    );
    refuse(field, &message, notes);
    None
}

fn refuse(field: &Field, message: &str, notes: &mut Notes) {
    notes.error(field.node.place, format!("metadata.{}: {message}", field.name));
}

/// Labels or annotations: an object of texts.
fn texts(node: &Node, field: &str, notes: &mut Notes) -> Option<Map<String, Value>> {
    let field = node.field(field)?;
    let Content::Object(entries) = &field.node.content else {
        refuse(field, &format!("must be an object, not {}", value::described(&field.node)), notes);
        return None;
    };
    let mut texts = Map::new();
    for entry in entries {
        value::refuse_ambiguous(&entry.node, &format!("metadata.{}", field.name), notes);
        match entry.node.to_json(false) {
            Value::String(text) => {
                texts.insert(entry.name.clone(), Value::String(text));
            }
            Value::Null => {
                texts.insert(entry.name.clone(), Value::String(String::new()));
            }
            _ => not_a_text(field, entry, entry.node.place, notes),
        }
    }
    Some(texts)
}

fn not_a_text(field: &Field, entry: &Field, place: Place, notes: &mut Notes) {
    let found = value::described(&entry.node);
    let path = format!("metadata.{}[{}]", field.name, entry.name);
    notes.error(place, format!("{path}: must be a text, not {found}; put it in quotes"));
}
