//! A tree against the CRD's schema: unknown and missing fields, wrong types, values out of bounds.
//! The same schema is installed on a cluster, so a file is refused here if it is refused there.

use serde_json::{Map, Value};

use super::complaint::Notes;
use super::nearest::nearest;
use super::node::{Content, Node};
use super::value;

/// Tells in `notes` what of `node`, which stands at `path`, does not fit `schema`.
pub(super) fn check(schema: &Value, node: &Node, path: &str, notes: &mut Notes) {
    Walk { whole: schema, root: path, notes }.visit(schema, node, path);
}

struct Walk<'w> {
    whole: &'w Value,
    root: &'w str,
    notes: &'w mut Notes,
}

impl<'w> Walk<'w> {
    fn visit(&mut self, schema: &'w Value, node: &Node, path: &str) {
        if node.absent() {
            return;
        }
        if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) {
            if !matches!(node.content, Content::Object(_)) {
                self.notes.error(node.place, format!("{path}: must be an object of options"));
            }
            return self.free(node, path);
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("object") => self.object(schema, node, path),
            Some("array") => self.list(schema, node, path),
            _ => value::check(schema, node, path, self.notes),
        }
    }

    fn object(&mut self, schema: &'w Value, node: &Node, path: &str) {
        let Content::Object(fields) = &node.content else {
            let found = value::described(node);
            let message = format!("{path}: must be an object with fields of its own, not {found}");
            return self.notes.error(node.place, message);
        };
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            let inner = schema.get("additionalProperties").unwrap_or(&Value::Null);
            for field in fields {
                self.visit(inner, &field.node, &format!("{path}[{}]", field.name));
            }
            return;
        };
        for field in fields {
            if let Some(inner) = properties.get(&field.name) {
                self.visit(inner, &field.node, &format!("{path}.{}", field.name));
            } else {
                let hint = self.hint(&field.name, properties);
                let message = format!("{path}.{}: unknown field; {hint}", field.name);
                self.notes.error(field.place, message);
            }
        }
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            if let Some(name) = name.as_str().filter(|name| node.field(name).is_none()) {
                let allowed = properties.get(name).map(value::allowed).unwrap_or_default();
                self.notes.error(node.place, format!("{path}.{name}: missing{allowed}"));
            }
        }
    }

    fn list(&mut self, schema: &'w Value, node: &Node, path: &str) {
        let Content::List(items) = &node.content else {
            let found = value::described(node);
            let message = format!("{path}: must be a list, each item after a `- `, not {found}");
            return self.notes.error(node.place, message);
        };
        let limit = schema.get("maxItems").and_then(Value::as_u64);
        if let Some(limit) = limit.filter(|limit| items.len() as u64 > *limit) {
            let message = format!("{path}: {} items; write at most {limit}", items.len());
            self.notes.error(node.place, message);
        }
        let inner = schema.get("items").unwrap_or(&Value::Null);
        for (index, item) in items.iter().enumerate() {
            let path = format!("{path}[{index}]");
            if item.absent() {
                self.notes.error(item.place, format!("{path}: empty; leave it out"));
            }
            self.visit(inner, item, &path);
        }
    }

    /// Anything goes, but what readers disagree on.
    fn free(&mut self, node: &Node, path: &str) {
        value::refuse_ambiguous(node, path, self.notes);
        for field in node.fields() {
            self.free(&field.node, &format!("{path}.{}", field.name));
        }
        for (index, item) in node.items().iter().enumerate() {
            self.free(item, &format!("{path}[{index}]"));
        }
    }

    /// What to write instead of the unknown `name`.
    fn hint(&self, name: &str, properties: &Map<String, Value>) -> String {
        if let Some(meant) = nearest(name, properties.keys().map(String::as_str)) {
            return format!("did you mean `{meant}`?");
        }
        if let Some(path) = elsewhere(self.whole, self.root, name) {
            return format!("did you mean `{path}`?");
        }
        let known: Vec<_> = properties.keys().map(String::as_str).collect();
        format!("known are {}", known.join(", "))
    }
}

/// The path at which the schema does have a field called `name`.
fn elsewhere(schema: &Value, path: &str, name: &str) -> Option<String> {
    let properties = schema.get("properties")?.as_object()?;
    if properties.contains_key(name) {
        return Some(format!("{path}.{name}"));
    }
    properties.iter().find_map(|(field, inner)| elsewhere(inner, &format!("{path}.{field}"), name))
}
