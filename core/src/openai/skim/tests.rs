//! What is skimmed is what serde_json reads; what is unusual is given up on.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::*;

/// Keys and values of a whole object, as they stand there.
fn skimmed(text: &str) -> Option<Vec<(&str, &str)>> {
    let mut found = Vec::new();
    let mut skimmer = Skimmer::new(text.as_bytes());
    skimmer.object(|key, value| {
        found.push((std::str::from_utf8(key).expect("text"), &text[value]));
        Some(())
    })?;
    skimmer.at_end().then_some(found)
}

/// The same by serde_json, as far as keys are different.
fn parsed(text: &str) -> Option<BTreeMap<String, &str>> {
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
    Some(fields.into_iter().map(|(key, value)| (key, value.get())).collect())
}

#[test]
fn values_of_every_kind_are_found_where_they_stand() {
    let text = " {\"a\" : [1, -2.5e+3, {\"b\":[]}, {}],\n\"c\":\"x\\\"\\u00e9\\\\\", \"d\":true,\"e\":null , \"f\":{\"g\":{\"h\":0}}} ";
    let found = skimmed(text).expect("an object");
    assert_eq!(found.first(), Some(&("a", r#"[1, -2.5e+3, {"b":[]}, {}]"#)));
    let as_parsed = found.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect();
    assert_eq!(Some(as_parsed), parsed(text));
    assert_eq!(skimmed("{ }"), Some(Vec::new()));
}

#[test]
fn what_is_no_json_is_given_up_on() {
    for text in [
        "",
        "{",
        "{}x",
        "[]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{\"a\":1 \"b\":2}",
        "{\"a\":[1,]}",
        "{\"a\":[1}",
        "{\"a\":{\"b\":1]}",
        "{\"a\":{1:2}}",
        "{\"a\":01}",
        "{\"a\":1.}",
        "{\"a\":.5}",
        "{\"a\":1e}",
        "{\"a\":-}",
        "{\"a\":+1}",
        "{\"a\":tru}",
        "{\"a\":nulll}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":\"\\u12g4\"}",
        "{\"a\":\"x}",
        "{a:1}",
    ] {
        assert_eq!(skimmed(text), None, "{text}");
        assert_eq!(parsed(text), None, "{text}: and serde_json agrees");
    }
}

#[test]
fn nesting_is_followed_as_deep_as_a_request_may_go() {
    let nested = |levels: usize| format!("{{\"a\":{}1{}}}", "[".repeat(levels), "]".repeat(levels));
    assert!(skimmed(&nested(127)).is_some());
    assert!(skimmed(&nested(128)).is_none());
}

/// JSON, or nearly so: made of the pieces that it is made of.
fn nearly_json() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\"a\"",
        "\"b\":",
        "\\n",
        "\\u00",
        "e9",
        "0",
        "1",
        "-",
        ".",
        "e",
        "+",
        "true",
        "null",
        " ",
        "\n",
        "é",
        "\u{1}",
        "{\"a\":1}",
        "[1,2]",
        "\"x\\\"y\"",
    ]);
    prop::collection::vec(pieces, 0..12).prop_map(|pieces| format!("{{{}}}", pieces.concat()))
}

proptest! {
    #[test]
    fn what_is_skimmed_is_what_serde_json_reads(text in nearly_json()) {
        if let Some(found) = skimmed(&text) {
            let as_parsed = found.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect();
            prop_assert_eq!(Some(as_parsed), parsed(&text));
        }
    }

    #[test]
    fn ordinary_json_is_skimmed(text in "\\PC{0,40}", number: f64, count: u32) {
        let value = serde_json::json!({"text": text, "list": [number, {"count": count}], "none": null});
        let written = serde_json::to_string(&value).expect("JSON");
        prop_assert_eq!(skimmed(&written).map(|found| found.len()), Some(3));
    }
}
