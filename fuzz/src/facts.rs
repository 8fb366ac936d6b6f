//! What is read of a JSON body is what `serde_json` makes of the whole of it, and a body is refused only
//! where it is no such body or could be read in two ways.

use flexinfer_core::openai::Facts;
use flexinfer_core::openai::facts::Key;
use flexinfer_core::rejection::Rejection;
use serde_json::Value;

const KEYS: [(Key, &str); 6] = [
    (Key::Messages, "messages"),
    (Key::Prompt, "prompt"),
    (Key::Input, "input"),
    (Key::MaxTokens, "max_tokens"),
    (Key::N, "n"),
    (Key::Stream, "stream"),
];

pub(crate) fn check(input: &[u8]) {
    let text = input.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(input);
    let whole: Option<Value> = serde_json::from_slice(text).ok();
    match (Facts::read(input), whole) {
        (Ok(facts), Some(whole)) => agree(&facts, input, &whole),
        // Numbers and escapes that only the engine will look at.
        (Ok(_), None) => assert!(std::str::from_utf8(input).is_ok(), "it is no text"),
        (Err(rejection), Some(Value::Object(fields))) => {
            let founded = match &rejection {
                Rejection::DuplicateKey { .. } => true,
                Rejection::MisspelledKey { key, spelled } => {
                    key != spelled && fields.contains_key(spelled)
                }
                Rejection::InvalidField { .. } => fields
                    .get("model")
                    .is_some_and(|model| model.as_str().is_none_or(str::is_empty)),
                Rejection::InvalidJson { problem } => problem.contains("nested deeper"),
                _ => false,
            };
            assert!(founded, "refused for {rejection:?}");
        }
        (Err(_), _) => {}
    }
}

fn agree(facts: &Facts, input: &[u8], whole: &Value) {
    let named = facts.model.as_ref().map(|model| model.name.as_str());
    assert_eq!(named, whole.get("model").and_then(Value::as_str));
    if let Some(model) = &facts.model {
        let span = input.get(model.span.clone()).unwrap_or_default();
        assert_eq!(serde_json::from_slice(span).ok(), Some(Value::from(model.name.as_str())));
    }
    assert_eq!(facts.stream, whole.get("stream") == Some(&Value::Bool(true)));
    let models = whole.as_object().into_iter().flat_map(|fields| fields.keys());
    let models = models.filter(|key| key.eq_ignore_ascii_case("model")).count();
    assert!(models <= 1, "a reader that knows no case finds several models");
    for (key, name) in KEYS {
        let read = facts.text(key, input).and_then(|text| serde_json::from_str(text).ok());
        assert_eq!(read, whole.get(name).cloned(), "{name}");
    }
}
