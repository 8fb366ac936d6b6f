//! The changes to a JSON body.

use bytes::Bytes;

use super::Splice;
use crate::openai::Facts;

/// `text` as a JSON string, in its quotes.
pub fn json_string(text: &str) -> Bytes {
    if text.bytes().any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\')) {
        // A string can always be written.
        return serde_json::to_vec(text).unwrap_or_default().into();
    }
    [b"\"", text.as_bytes(), b"\""].concat().into()
}

/// What makes a JSON body name `model`: its `model` value replaced where it is another, or a `model`
/// field put first where it has none. A byte order mark goes (BODY-08). Often nothing at all.
pub fn json_model(facts: &Facts, model: &str) -> Vec<Splice> {
    let mut splices: Vec<Splice> = without_mark(facts).into_iter().collect();
    match &facts.model {
        Some(field) if field.name == model => {}
        Some(field) => splices.push(Splice::new(field.span.clone(), json_string(model))),
        None => {
            let after_brace = facts.opens_at + 1;
            let mut field = br#""model":"#.to_vec();
            field.extend_from_slice(&json_string(model));
            if !facts.empty {
                field.push(b',');
            }
            splices.push(Splice::new(after_brace..after_brace, field));
        }
    }
    splices
}

/// What leaves out a byte order mark, if there is one.
pub(super) fn without_mark(facts: &Facts) -> Option<Splice> {
    (facts.mark > 0).then(|| Splice::new(0..facts.mark, Bytes::new()))
}
