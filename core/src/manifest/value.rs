//! One value against its schema: type, allowed words, form and bounds.

use flexinfer_crds::model::TEXT_FORMS;
use serde_json::Value;

use super::complaint::Notes;
use super::nearest::nearest;
use super::node::{Content, Node, Scalar};
use super::scalar::Meaning;

/// Tells in `notes` what of the value `node` does not fit `schema`.
pub(super) fn check(schema: &Value, node: &Node, path: &str, notes: &mut Notes) {
    let Content::Scalar(scalar) = &node.content else {
        let wanted = wanted(schema);
        let message = format!("{path}: must be {wanted}, not {}", described(node));
        return notes.error(node.place, message);
    };
    let fault = if schema.get("x-kubernetes-int-or-string").is_some() {
        amount(schema, scalar)
    } else {
        match schema.get("type").and_then(Value::as_str) {
            Some("string") => text(schema, scalar),
            Some("integer") => integer(schema, scalar),
            Some("boolean") => truth(scalar),
            _ => Ok(()),
        }
    };
    if let Err(fault) = fault {
        notes.error(node.place, format!("{path}: {fault}"));
    }
}

/// Tells in `notes` if another reader would take the value for something else.
pub(super) fn refuse_ambiguous(node: &Node, path: &str, notes: &mut Notes) {
    if let Content::Scalar(scalar) = &node.content
        && let Err(fault) = unambiguous(scalar)
    {
        notes.error(node.place, format!("{path}: {fault}"));
    }
}

/// What the node is, in words.
pub(super) fn described(node: &Node) -> String {
    match &node.content {
        Content::List(_) => "a list".to_owned(),
        Content::Object(_) => "an object".to_owned(),
        Content::Scalar(scalar) => match scalar.means() {
            Meaning::Null => "nothing".to_owned(),
            Meaning::Truth(_) | Meaning::Number(_) => scalar.text.clone(),
            Meaning::Text | Meaning::Ambiguous(_) => format!("the text `{}`", shown(scalar)),
        },
    }
}

/// The words that may stand there, as the end of a sentence; empty where any may.
pub(super) fn allowed(schema: &Value) -> String {
    let words = words(schema);
    if words.is_empty() { String::new() } else { format!("; write {}", words.join(", ")) }
}

fn wanted(schema: &Value) -> &'static str {
    match schema.get("type").and_then(Value::as_str) {
        Some("integer") => "a whole number",
        Some("boolean") => "true or false",
        Some("string") => "a text",
        _ => "a single value",
    }
}

fn words(schema: &Value) -> Vec<&str> {
    let words = schema.get("enum").and_then(Value::as_array);
    words.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The text, shortened for a message.
fn shown(scalar: &Scalar) -> String {
    const LONGEST: usize = 60;
    if scalar.text.chars().count() <= LONGEST {
        return scalar.text.clone();
    }
    scalar.text.chars().take(LONGEST).chain("...".chars()).collect()
}

fn unambiguous(scalar: &Scalar) -> Result<(), String> {
    let Meaning::Ambiguous(other) = scalar.means() else { return Ok(()) };
    let text = shown(scalar);
    Err(format!("`{text}` is {other} for some readers of YAML; put it in quotes, or write it out"))
}

fn amount(schema: &Value, scalar: &Scalar) -> Result<(), String> {
    unambiguous(scalar)?;
    match scalar.means() {
        // A cluster takes whole numbers and texts here, and no fractions.
        Meaning::Number(number) if number.is_f64() => {
            Err(format!("{0} needs quotes: \"{0}\"", scalar.text))
        }
        Meaning::Truth(_) => Err(format!("`{}` is not an amount; write one like 8Gi", scalar.text)),
        _ => form(schema, &scalar.text),
    }
}

fn text(schema: &Value, scalar: &Scalar) -> Result<(), String> {
    let words = words(schema);
    if !words.is_empty() {
        return word(&words, &scalar.text);
    }
    // A form says better what is wrong with a number that lacks its unit.
    form(schema, &scalar.text)?;
    unambiguous(scalar)?;
    if matches!(scalar.means(), Meaning::Truth(_) | Meaning::Number(_)) {
        return Err(format!("must be a text; put it in quotes: \"{}\"", scalar.text));
    }
    let length = scalar.text.chars().count() as u64;
    let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
    if let Some(limit) = bound("maxLength").filter(|limit| length > *limit) {
        return Err(format!("{length} letters; write at most {limit}"));
    }
    if bound("minLength").is_some_and(|least| length < least) {
        return Err("empty; write something".to_owned());
    }
    Ok(())
}

fn word(words: &[&str], text: &str) -> Result<(), String> {
    if words.contains(&text) {
        return Ok(());
    }
    let allowed = words.join(", ");
    let meant = nearest(text, words.iter().copied());
    let hint = meant.map(|meant| format!(" (did you mean `{meant}`?)")).unwrap_or_default();
    Err(format!("`{text}` is not one of {allowed}{hint}"))
}

fn form(schema: &Value, text: &str) -> Result<(), String> {
    let Some(pattern) = schema.get("pattern").and_then(Value::as_str) else { return Ok(()) };
    let form = TEXT_FORMS.iter().find(|form| form.pattern == pattern);
    form.map_or(Ok(()), |form| (form.check)(text))
}

fn integer(schema: &Value, scalar: &Scalar) -> Result<(), String> {
    unambiguous(scalar)?;
    let Meaning::Number(number) = scalar.means() else {
        let unquoted = Scalar { text: scalar.text.clone(), plain: true };
        if matches!(unquoted.means(), Meaning::Number(_)) && !scalar.plain {
            return Err(format!("must be a whole number; take the quotes off: {}", scalar.text));
        }
        return Err(format!("must be a whole number, not `{}`", shown(scalar)));
    };
    let Some(value) = number.as_i64() else {
        return Err(format!("must be a whole number, not {number}"));
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "bounds of a schema are small whole numbers"
    )]
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64).map(|bound| bound as i64);
    let narrow = schema.get("format").and_then(Value::as_str) == Some("int32");
    let widest = if narrow { (i32::MIN.into(), i32::MAX.into()) } else { (i64::MIN, i64::MAX) };
    let least = bound("minimum").unwrap_or(widest.0);
    let most = bound("maximum").unwrap_or(widest.1);
    if (least..=most).contains(&value) {
        return Ok(());
    }
    if most == widest.1 {
        return Err(format!("{value} is too small; write at least {least}"));
    }
    Err(format!("{value} is out of range; write a number from {least} to {most}"))
}

fn truth(scalar: &Scalar) -> Result<(), String> {
    if matches!(scalar.means(), Meaning::Truth(_)) {
        return Ok(());
    }
    if !scalar.plain && matches!(scalar.text.as_str(), "true" | "false") {
        return Err(format!("must be true or false; take the quotes off: {}", scalar.text));
    }
    Err(format!("must be true or false, not `{}`", shown(scalar)))
}
