//! Nothing but the model's name changes, whatever stands around it.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Rope, Splice, for_engine, form_model, json_model, json_string, splice, spliced};
use crate::openai::form::FormScanner;
use crate::openai::{BodyKind, Facts, Understood};

fn renamed(body: &str, model: &str) -> Rope {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let facts = Facts::read(&body).expect("readable");
    splice(&body, json_model(&facts, model)).expect("spans of the same body")
}

fn text(rope: &Rope) -> String {
    let bytes = rope.to_bytes();
    assert_eq!(bytes.len(), rope.len());
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

#[test]
fn body_04_number_texts_stay_as_they_were_sent() {
    let body = |model: &str| {
        format!(
            r#"{{"model":"{model}","temperature":117.63331139400017,"a":1e400,"b":1E-7,"c":-0.0,"d":1.10,"prompt":"x"}}"#
        )
    };
    assert_eq!(text(&renamed(&body("m"), "org/longer-name")), body("org/longer-name"));
}

#[test]
fn names_grow_shrink_and_stay() {
    let body = r#"{"a":1,"model":"alias","z":"é"}"#;
    for model in ["a", "other", "much/longer:name", "q\"uote\\", "日本"] {
        let rope = renamed(body, model);
        let value: Value = serde_json::from_str(&text(&rope)).expect("still JSON");
        assert_eq!(value, json!({"a": 1, "model": model, "z": "é"}));
    }
    assert_eq!(renamed(body, "alias").segments(), [body]);
}

#[test]
fn a_body_without_a_model_gets_one() {
    assert_eq!(text(&renamed(r#" {"a":1}"#, "m")), r#" {"model":"m","a":1}"#);
    assert_eq!(text(&renamed("{ }", "m")), r#"{"model":"m" }"#);
}

#[test]
fn body_08_byte_order_mark_is_not_sent_on() {
    assert_eq!(text(&renamed("\u{feff}{\"model\":\"a\"}", "b")), r#"{"model":"b"}"#);
    assert_eq!(text(&renamed("\u{feff}{\"model\":\"a\"}", "a")), r#"{"model":"a"}"#);
    assert_eq!(text(&renamed("\u{feff}{}", "a")), r#"{"model":"a"}"#);
}

fn renamed_form(body: &'static str, model: &str) -> String {
    let Ok(BodyKind::Form(boundary)) = BodyKind::of(Some("multipart/form-data; boundary=XB"))
    else {
        panic!("a form");
    };
    let mut scanner = FormScanner::new(boundary);
    scanner.push(body.as_bytes()).expect("readable");
    let form = scanner.finish().expect("whole");
    text(&splice(&Bytes::from_static(body.as_bytes()), form_model(&form, model)).expect("fits"))
}

#[test]
fn only_the_model_part_of_a_form_changes() {
    let body = "--XB\r\nContent-Disposition: form-data; name=\"image[]\"\r\n\r\nmodel=a\r\n--XB\r\n\
        Content-Disposition: form-data; name=\"model\"\r\n\r\na\r\n--XB--\r\n";
    for model in ["longer/name", "b", "日本"] {
        let expected = body.replace("\r\na\r\n", &format!("\r\n{model}\r\n"));
        assert_eq!(renamed_form(body, model), expected);
    }
    assert_eq!(renamed_form(body, "a"), body);
}

#[test]
fn a_form_without_a_model_gets_one() {
    let with_model = "--XB\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--XB";
    assert_eq!(renamed_form("--XB--", "m"), format!("{with_model}--"));
    let part = "\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\n2\r\n--XB--\r\n";
    let body: &'static str = format!("--XB{part}").leak();
    assert_eq!(renamed_form(body, "m"), format!("{with_model}{part}"));
    let body: &'static str = format!("\r\n--XB{part}").leak();
    assert_eq!(renamed_form(body, "m"), format!("\r\n{with_model}{part}"));
}

#[test]
fn an_engine_that_takes_any_name_gets_the_clients() {
    let sent_on = |body: &'static str, name| {
        let body = Bytes::from_static(body.as_bytes());
        let understood = Understood::read(None, &body).expect("readable");
        text(&splice(&body, for_engine(&understood, name)).expect("fits"))
    };
    assert_eq!(sent_on(r#"{"model":"a"}"#, None), r#"{"model":"a"}"#);
    assert_eq!(sent_on("{}", None), "{}");
    assert_eq!(sent_on("\u{feff}{}", None), "{}");
    assert_eq!(sent_on(r#"{"model":"a"}"#, Some("b")), r#"{"model":"b"}"#);
    assert_eq!(sent_on("", Some("b")), "");
}

#[test]
fn what_is_not_changed_is_not_copied() {
    let body = Bytes::from(format!(r#"{{"image":"{}","model":"a","z":1}}"#, "x".repeat(1 << 20)));
    let facts = Facts::read(&body).unwrap();
    let rope = splice(&body, json_model(&facts, "b")).unwrap();
    let [head, name, tail] = rope.segments() else { panic!("three pieces") };
    assert_eq!(head.as_ptr(), body.as_ptr());
    assert_eq!(&name[..], b"\"b\"");
    assert_eq!(tail.as_ptr_range().end, body.as_ptr_range().end);
}

#[test]
fn changes_may_come_in_any_order_but_not_overlap() {
    let body = Bytes::from_static(b"0123456789");
    let two = vec![Splice::new(8..9, "Z"), Splice::new(1..3, ""), Splice::new(5..5, "++")];
    assert_eq!(text(&splice(&body, two).unwrap()), "034++567Z9");
    for bad in [
        vec![Splice::new(1..4, "a"), Splice::new(3..5, "b")],
        vec![Splice::new(9..11, "a")],
        vec![Splice { range: std::ops::Range { start: 4, end: 2 }, replacement: Bytes::new() }],
    ] {
        let error = splice(&body, bad.clone()).unwrap_err();
        assert_eq!(spliced(&body, bad), Err(error.clone()));
        assert!(error.to_string().contains("a body of 10 bytes"), "{error}");
    }
    assert!(splice(&Bytes::new(), Vec::new()).unwrap().is_empty());
}

proptest! {
    #[test]
    fn a_rename_changes_the_model_and_nothing_else(
        before in ".{0,40}", after in "\\PC{0,40}", number: f64, from in ".{1,10}", to in ".{1,20}"
    ) {
        let value = json!({"a": before, "model": from, "n": number, "z": [after]});
        let body = value.to_string();
        let rope = renamed(&body, &to);
        let parsed: Value = serde_json::from_slice(&rope.to_bytes()).unwrap();
        prop_assert_eq!(&parsed["model"], &to);
        let span = Facts::read(body.as_bytes()).unwrap().model.unwrap().span;
        let expected = [&body.as_bytes()[..span.start], &json_string(&to), &body.as_bytes()[span.end..]].concat();
        if from != to {
            prop_assert_eq!(&rope.to_bytes()[..], &expected[..]);
        }
    }

    #[test]
    fn splices_are_what_replacing_by_hand_gives(
        body in prop::collection::vec(any::<u8>(), 0..60),
        cuts in prop::collection::vec((0_usize..60, prop::collection::vec(any::<u8>(), 0..5)), 0..6),
    ) {
        let mut places: Vec<usize> = cuts.iter().map(|(at, _)| (*at).min(body.len())).collect();
        places.sort_unstable();
        let splices: Vec<Splice> = places.chunks_exact(2).zip(&cuts)
            .map(|(pair, (_, new))| Splice::new(pair[0]..pair[1], new.clone())).collect();
        let mut by_hand = body.clone();
        for splice in splices.iter().rev() {
            by_hand.splice(splice.range.clone(), splice.replacement.iter().copied());
        }
        prop_assert_eq!(&spliced(&body, splices.clone()).unwrap()[..], &by_hand[..]);
        let rope = splice(&Bytes::from(body), splices).unwrap();
        prop_assert_eq!(rope.len(), by_hand.len());
        prop_assert_eq!(&rope.to_bytes()[..], &by_hand[..]);
        prop_assert!(rope.segments().iter().all(|segment| !segment.is_empty()));
    }
}
