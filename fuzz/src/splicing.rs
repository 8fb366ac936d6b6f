//! A body that is changed for its engine is the client's, byte for byte, but for what was to be changed.

use bytes::Bytes;
use flexinfer_core::limits::with_usage;
use flexinfer_core::openai::{Facts, Understood};
use flexinfer_core::rewriting::{for_engine, json_string, splice};
use serde_json::Value;

const NAME: &str = "org/\"the engine's\"\u{e9}";

pub(crate) fn check(input: &[u8]) {
    let Ok(facts) = Facts::read(input) else { return };
    let body = Bytes::copy_from_slice(input);
    let text = input.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(input);
    let unchanged = spliced(&body, for_engine(&Understood::Json(facts.clone()), None));
    assert_eq!(unchanged, text, "only a mark is left out");

    let renamed = spliced(&body, for_engine(&Understood::Json(facts.clone()), Some(NAME)));
    let again = Facts::read(&renamed).ok().and_then(|facts| facts.model);
    assert!(again.is_some(), "it names its model");
    let Some(again) = again else { return };
    assert_eq!(again.name, NAME);
    if let Some(model) = &facts.model {
        let mark = input.len() - text.len();
        let before = input.get(mark..model.span.start).unwrap_or_default();
        let after = input.get(model.span.end..).unwrap_or_default();
        assert_eq!(renamed, [before, &json_string(NAME), after].concat());
    } else {
        same_but(&renamed, text, "model");
    }
    usage(&facts, &body, text);
}

/// A stream that is made to tell its usage asks for everything else as before.
fn usage(facts: &Facts, body: &Bytes, text: &[u8]) {
    let Some(asked) = with_usage(facts, body) else { return };
    let mut changes = for_engine(&Understood::Json(facts.clone()), None);
    changes.push(asked);
    let asking = spliced(body, changes);
    let whole: Option<Value> = serde_json::from_slice(&asking).ok();
    if let Some(whole) = whole {
        let told = whole.get("stream_options").and_then(|options| options.get("include_usage"));
        assert_eq!(told, Some(&Value::Bool(true)));
        same_but(&asking, text, "stream_options");
    }
}

/// Both are the same object but for one field.
fn same_but(one: &[u8], other: &[u8], field: &str) {
    let fields = |bytes: &[u8]| match serde_json::from_slice(bytes) {
        Ok(Value::Object(mut fields)) => {
            fields.remove(field);
            Some(fields)
        }
        _ => None,
    };
    assert_eq!(fields(one), fields(other), "but for {field}");
}

fn spliced(body: &Bytes, changes: Vec<flexinfer_core::rewriting::Splice>) -> Vec<u8> {
    let rope = splice(body, changes);
    assert!(rope.is_ok(), "splices lie within the body and apart");
    rope.map(|rope| rope.to_bytes().to_vec()).unwrap_or_default()
}
