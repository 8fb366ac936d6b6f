//! What a JSON request says that decides something, and where it says it. The body itself is never
//! changed or copied here: `rewriting` splices it by the spans found. Called by the stage that
//! understands a request, on bytes from anybody.
//!
//! One reading of the body must be the only one possible, since the engine reads it again with a
//! parser of its own: so a key that policy reads may appear once and in one spelling (some parsers know
//! no case), and nothing that some parser accepts and another does not (bad UTF-8, deep nesting,
//! trailing bytes, NaN) passes.

mod conversation;
mod depth;
mod excerpt;
mod keys;
#[cfg(test)]
mod tests;
mod unescape;

use std::ops::Range;

pub use conversation::Opening;
pub(crate) use excerpt::{Excerpt, string};
pub use keys::Key;

use crate::rejection::Rejection;
use keys::{Misspelled, Object};

/// The deepest nesting of arrays and objects that is accepted.
pub const DEEPEST: usize = 128;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What a JSON body says. Spans count from the first byte of the body as it was received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The `model` field, if there is one.
    pub model: Option<ModelField>,
    /// Whether `stream` is the boolean `true`. Strings and numbers are left for the engine to judge.
    pub stream: bool,
    /// Where the object's `{` stands: 0 but for white space and a byte order mark.
    pub(crate) opens_at: usize,
    /// Whether the object has no fields at all.
    pub(crate) empty: bool,
    /// The length of a byte order mark to leave out when the body is sent on: 3 or 0 (BODY-08).
    pub(crate) mark: usize,
    spans: Vec<(Key, Range<usize>)>,
}

/// A model's name as the body gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelField {
    /// The name, unescaped. Never empty.
    pub name: String,
    /// The span of the value in the body, its quotes included.
    pub span: Range<usize>,
}

impl Facts {
    /// Reads a whole body in one pass. The rejection, if it comes to one, says what is wrong and
    /// where.
    pub fn read(body: &[u8]) -> Result<Self, Rejection> {
        let mark = if body.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let text = body.get(mark..).unwrap_or_default();
        let text = std::str::from_utf8(text).map_err(|error| not_utf8(body, mark, &error))?;
        let opens_at = mark + opening(text)?;

        let object = match Object::skimmed(text) {
            Some(object) => object,
            None => carefully(text)?,
        };
        if let Some(key) = object.duplicate {
            return Err(Rejection::DuplicateKey { key: key.into() });
        }
        if let Some(Misspelled { key, spelled }) = object.misspelled {
            return Err(Rejection::MisspelledKey { key: key.into(), spelled });
        }

        let spans = Vec::with_capacity(object.fields.len());
        let mut facts = Self { opens_at, empty: object.empty, mark, spans, ..Self::default() };
        for (key, raw) in object.fields {
            let span = span_within(body, raw);
            match key {
                Key::Model => {
                    facts.model = Some(ModelField { name: name(raw)?, span: span.clone() });
                }
                Key::Stream => facts.stream = raw == "true",
                _ => {}
            }
            facts.spans.push((key, span));
        }
        Ok(facts)
    }

    /// Where the value of `key` stands, if the body has that key.
    pub fn span(&self, key: Key) -> Option<Range<usize>> {
        self.spans.iter().find(|(found, _)| *found == key).map(|(_, span)| span.clone())
    }

    /// The JSON text of the value of `key` in `body`, which must be the body that was read.
    pub fn text<'a>(&self, key: Key, body: &'a [u8]) -> Option<&'a str> {
        std::str::from_utf8(self.bytes(key, body)?).ok()
    }

    /// The same for who needs not be told once more that it is text.
    pub(crate) fn bytes<'a>(&self, key: Key, body: &'a [u8]) -> Option<&'a [u8]> {
        body.get(self.span(key)?)
    }
}

/// Reads what is not the commonest kind of object, or says what is wrong with it.
fn carefully(text: &str) -> Result<Object<'_>, Rejection> {
    let object: Object<'_> =
        serde_json::from_str(text).map_err(|error| invalid(error.to_string()))?;
    if object.duplicate.is_none() && depth::exceeds(text.as_bytes(), DEEPEST) {
        return Err(invalid(format!("it is nested deeper than {DEEPEST} levels")));
    }
    Ok(object)
}

/// Where the object begins, or what stands there in its place.
fn opening(text: &str) -> Result<usize, Rejection> {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let start = text.bytes().take_while(blank).count();
    let found = match text.as_bytes().get(start) {
        Some(b'{') => return Ok(start),
        None => "it is empty",
        Some(b'[') => "it is an array",
        Some(b'"') => "it is a string",
        Some(b'-' | b'0'..=b'9') => "it is a number",
        Some(_) => "it does not begin with {",
    };
    Err(invalid(found.to_owned()))
}

fn name(raw: &str) -> Result<String, Rejection> {
    let quoted = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    if let Some(name) = quoted.filter(|name| !name.is_empty() && !name.contains('\\')) {
        return Ok(name.to_owned());
    }
    match serde_json::from_str::<String>(raw) {
        Ok(name) if !name.is_empty() => Ok(name),
        _ => {
            Err(Rejection::InvalidField { field: "model", expected: "a string that is not empty" })
        }
    }
}

/// Where `raw`, which borrows from `body`, stands in it: its address says so.
pub(crate) fn span_within(body: &[u8], raw: &str) -> Range<usize> {
    let start = raw.as_ptr().addr().saturating_sub(body.as_ptr().addr());
    start..start + raw.len()
}

fn invalid(problem: String) -> Rejection {
    Rejection::InvalidJson { problem }
}

fn not_utf8(body: &[u8], mark: usize, error: &std::str::Utf8Error) -> Rejection {
    if body.starts_with(b"\xFF\xFE") || body.starts_with(b"\xFE\xFF") {
        return invalid("it is UTF-16; send UTF-8".to_owned());
    }
    invalid(format!("it is not UTF-8 at byte {}", mark + error.valid_up_to()))
}
