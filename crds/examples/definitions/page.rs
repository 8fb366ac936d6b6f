//! A page for people about one kind: every field with its type and its meaning, from the schema that
//! the cluster checks.

use std::fmt::Write as _;

use serde_json::Value;

/// The page of `kind`, whose definition is this.
pub(crate) fn page(kind: &str, definition: &Value) -> String {
    let version = at(definition, "/spec/versions/0");
    let schema = at(version, "/schema/openAPIV3Schema");
    let group = text(at(definition, "/spec/group"));
    let name = text(at(version, "/name"));
    let mut page = format!(
        "# {kind}\n\nMade from `crds/src` by `cargo xtask generate`; do not edit.\n\n\
         `apiVersion: {group}/{name}`, `kind: {kind}`. {}\n\n\
         Only what is marked *required* has to be said. A duration is written like `90s`, `5m` or `1h30m`; a \
         quantity like `500m`, `4Gi` or `2`.\n",
        sentence(schema)
    );
    section(&mut page, "spec", at(schema, "/properties/spec"));
    page.push_str("\n# What the controller says in `status`\n");
    section(&mut page, "status", at(schema, "/properties/status"));
    page
}

/// The fields of one object, then each object among them.
fn section(page: &mut String, path: &str, schema: &Value) {
    let required: Vec<&str> = list(at(schema, "/required")).map(text).collect();
    let mut inner = Vec::new();
    // Writing to a String cannot fail.
    let _ = writeln!(page, "\n## {path}\n");
    if path.contains('.') {
        let _ = writeln!(page, "{}\n", sentence(schema));
    }
    let _ = writeln!(page, "| field | type | meaning |\n|---|---|---|");
    for (name, field) in at(schema, "/properties").as_object().into_iter().flatten() {
        let must = if required.contains(&name.as_str()) { "*required*, " } else { "" };
        let _ = writeln!(page, "| `{name}` | {must}{} | {} |", kind_of(field), sentence(field));
        let item = if at(field, "/items").is_object() { at(field, "/items") } else { field };
        if at(item, "/properties").is_object() && !foreign(name) {
            let mark = if at(field, "/items").is_object() { "[]" } else { "" };
            inner.push((format!("{path}.{name}{mark}"), item));
        }
    }
    let rules: Vec<&str> = list(at(schema, "/x-kubernetes-validations"))
        .map(|rule| text(at(rule, "/message")))
        .collect();
    if !rules.is_empty() {
        page.push_str("\nRefused:\n\n");
        for rule in rules {
            let _ = writeln!(page, "* {}", escaped(rule));
        }
    }
    for (path, schema) in inner {
        section(page, &path, schema);
    }
}

/// Kubernetes' own types, which its documentation tells of.
fn foreign(field: &str) -> bool {
    matches!(field, "conditions" | "tolerations")
}

/// A field's type in words.
fn kind_of(field: &Value) -> String {
    let choices: Vec<String> = list(at(field, "/enum"))
        .filter_map(Value::as_str)
        .map(|word| format!("`{word}`"))
        .collect();
    if !choices.is_empty() {
        return choices.join(", ");
    }
    if at(field, "/x-kubernetes-int-or-string") == true {
        return "quantity".to_owned();
    }
    let pattern = text(at(field, "/pattern"));
    match text(at(field, "/type")) {
        "string" if pattern.contains("(h|m|s|ms)") => "duration".to_owned(),
        "string" if text(at(field, "/format")) == "date-time" => "time".to_owned(),
        "string" => "text".to_owned(),
        "boolean" => "`true`, `false`".to_owned(),
        "array" => format!("list of {}", plural(at(field, "/items"))),
        "integer" | "number" => number(field),
        _ if at(field, "/additionalProperties").is_object() => "map".to_owned(),
        _ => "object".to_owned(),
    }
}

fn plural(items: &Value) -> &'static str {
    match text(at(items, "/type")) {
        "string" => "texts",
        "integer" | "number" => "numbers",
        _ => "objects",
    }
}

/// `1 to 100`, as far as there are bounds.
fn number(field: &Value) -> String {
    let whole = |bound: &Value| bound.as_f64().map(|bound| format!("{bound}"));
    match (whole(at(field, "/minimum")), whole(at(field, "/maximum"))) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("{least} or more"),
        (None, Some(most)) => format!("{most} or less"),
        (None, None) => "number".to_owned(),
    }
}

/// A description on one line of a table.
fn sentence(schema: &Value) -> String {
    let words: Vec<&str> = text(at(schema, "/description")).split_whitespace().collect();
    escaped(&words.join(" "))
}

/// Text for a cell of a table; between backticks only the bar means something.
fn escaped(text: &str) -> String {
    let bars = text.replace('|', "\\|");
    let parts = bars.split('`').enumerate().map(|(number, part)| {
        if number % 2 == 0 { part.replace('<', "&lt;") } else { part.to_owned() }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// The value at a path like `/spec/group`; null where there is none.
fn at<'v>(value: &'v Value, path: &str) -> &'v Value {
    value.pointer(path).unwrap_or(&Value::Null)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
