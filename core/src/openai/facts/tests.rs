//! Bodies as clients send them, and as attackers do.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Facts, Key};
use crate::rejection::Rejection;

fn read(body: impl AsRef<[u8]>) -> Result<Facts, Rejection> {
    Facts::read(body.as_ref())
}

fn model_of(body: &str) -> (String, String) {
    let model = read(body).expect("readable").model.expect("named");
    (model.name, body[model.span].to_owned())
}

fn problem(body: impl AsRef<[u8]>) -> String {
    let rejection = read(body).expect_err("refused");
    assert_eq!(rejection.status(), 400);
    rejection.message()
}

#[test]
fn the_model_is_found_wherever_it_stands() {
    assert_eq!(model_of(r#"{"model":"m","stream":true}"#), ("m".into(), r#""m""#.into()));
    assert_eq!(
        model_of(" {\n\"a\": [1, {\"model\": 2}], \"model\" : \"m\" } "),
        ("m".into(), r#""m""#.into())
    );
    assert_eq!(
        model_of(r#"{"mod\u0065l":"a\u0062\"c"}"#),
        ("ab\"c".into(), r#""a\u0062\"c""#.into())
    );
    assert_eq!(model_of(r#"{"prompt":"日本🌍","model":"モデル"}"#).1, "\"モデル\"");
}

#[test]
fn a_model_inside_something_else_is_not_the_model() {
    assert_eq!(
        read(r#"{"metadata":{"model":"x"},"messages":[{"model":"y"}]}"#).unwrap().model,
        None
    );
}

#[test]
fn only_boolean_true_is_a_stream() {
    assert!(read(r#"{"stream":true}"#).unwrap().stream);
    for other in ["false", "null", "\"true\"", "1", "[true]"] {
        assert!(!read(format!(r#"{{"stream":{other}}}"#)).unwrap().stream, "{other}");
    }
}

#[test]
fn the_text_of_a_field_is_what_was_sent() {
    let body = br#"{"max_tokens": 1e2 , "stream_options":{ "x":1.10 }}"#;
    let facts = read(body).unwrap();
    assert_eq!(facts.text(Key::MaxTokens, body), Some("1e2"));
    assert_eq!(facts.text(Key::StreamOptions, body), Some(r#"{ "x":1.10 }"#));
    assert_eq!(facts.text(Key::User, body), None);
}

#[test]
fn body_01_duplicate_model_key_is_refused() {
    for body in [
        r#"{"model":"small","messages":[],"model":"big"}"#,
        r#"{"model":"big","messages":[],"model":"small"}"#,
        r#"{"model":"small","mod\u0065l":"big"}"#,
        r#"{"model":"small","model":"small"}"#,
    ] {
        assert_eq!(read(body), Err(Rejection::DuplicateKey { key: "model" }), "{body}");
    }
    assert_eq!(
        read(r#"{"stream":true,"stream":false}"#),
        Err(Rejection::DuplicateKey { key: "stream" })
    );
    assert_eq!(
        read(r#"{"max_tokens":1,"max_t\u006fkens":9}"#),
        Err(Rejection::DuplicateKey { key: "max_tokens" })
    );
    assert_eq!(
        read(r#"{"cacheKey":1,"cacheKey":2}"#),
        Err(Rejection::DuplicateKey { key: "cacheKey" })
    );
}

#[test]
fn body_01_a_key_that_some_readers_take_for_the_model_is_refused() {
    let misspelled =
        |key, spelled: &str| Err(Rejection::MisspelledKey { key, spelled: spelled.to_owned() });
    for (body, key, spelled) in [
        (r#"{"model":"small","Model":"big"}"#, "model", "Model"),
        (r#"{"MODEL":"big","model":"small"}"#, "model", "MODEL"),
        (r#"{"model":"small","mod\u0045l":"big"}"#, "model", "modEl"),
        (r#"{"Model":"big"}"#, "model", "Model"),
        (r#"{"model":"m","Max_Tokens":9}"#, "max_tokens", "Max_Tokens"),
        (r#"{"model":"m","max_to\u212aens":9}"#, "max_tokens", "max_to\u{212a}ens"),
        (r#"{"model":"m","me\u017f\u017fages":[]}"#, "messages", "meſſages"),
        (r#"{"model":"m","meſſages":[]}"#, "messages", "meſſages"),
        (r#"{"model":"m","STREAM":true}"#, "stream", "STREAM"),
        (r#"{"model":"m","N":9}"#, "n", "N"),
        (r#"{"model":"m","cachekey":"x"}"#, "cacheKey", "cachekey"),
        (r#"{"model":"m","DocumentContext":"x"}"#, "documentContext", "DocumentContext"),
    ] {
        assert_eq!(read(body), misspelled(key, spelled), "{body}");
    }
    let others = r#"{"model":"m","Modell":1,"ı":2,"Temperature":1,"métadata":2,"x":{"Model":3},"cacheKey":"k"}"#;
    assert_eq!(read(others).unwrap().model.unwrap().name, "m");
}

#[test]
fn body_01_repeated_keys_that_nothing_reads_pass() {
    let body = r#"{"model":"m","x":1,"x":2,"messages":[{"role":"user","role":"user"}],"tools":[{"model":1,"model":2}]}"#;
    assert_eq!(read(body).unwrap().model.unwrap().name, "m");
}

#[test]
fn body_07_invalid_utf8_anywhere_is_refused() {
    let said = problem(b"{\"model\":\"m\",\"prompt\":\"\xF0\x9F\x98\"}");
    assert!(said.contains("not UTF-8 at byte 23"), "{said}");
    problem(b"{\"model\":\"m\",\"a\xFF\":1}");
}

#[test]
fn body_08_byte_order_mark_is_left_out() {
    let body = b"\xEF\xBB\xBF{\"model\":\"m\",\"prompt\":\"x\"}";
    let facts = read(body).unwrap();
    assert_eq!((facts.mark, facts.opens_at), (3, 3));
    assert_eq!(&body[facts.model.unwrap().span], b"\"m\"");
    let utf16: Vec<u8> =
        "\u{feff}{\"model\":\"m\"}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(problem(utf16).contains("UTF-16"));
}

#[test]
fn body_16_what_only_some_parsers_read_is_refused() {
    for (body, place) in [
        (r#"{"model":"m","temperature":NaN}"#, "column 28"),
        (r#"{"model":"m","temperature":-Infinity}"#, "column"),
        (r#"{"model":"small"} {"model":"big"}"#, "trailing characters at line 1 column 19"),
        (r#"{"model":"m"}xyz"#, "trailing characters"),
        (r#"{"model":"m",}"#, "trailing comma"),
        ("{'model':'m'}", "line 1 column 2"),
        (r#"{"model":"m","a":01}"#, "column"),
        (r#"{"model":"m","a":+1}"#, "column"),
        (r#"{"model":"m"/*c*/}"#, "column"),
        ("{\"model\":\"m\",\"a\":\"\n\"}", "control character"),
        (r#"{"model":"m""#, "EOF"),
        ("", "empty"),
        ("  ", "empty"),
        (r#"[{"model":"m"}]"#, "array"),
        (r#""model""#, "string"),
        ("null", "does not begin with {"),
    ] {
        let said = problem(body);
        assert!(said.contains(place), "{body}: {said}");
    }
}

#[test]
fn a_model_that_is_not_a_name_is_refused() {
    for value in ["null", "1", "[\"m\"]", "{\"name\":\"m\"}", "true", "\"\"", r#""\ud800""#] {
        let said = problem(format!(r#"{{"model":{value}}}"#));
        assert!(said.contains("\"model\" must be a string"), "{value}: {said}");
    }
}

#[test]
fn nesting_is_allowed_to_the_limit_and_no_deeper() {
    let nested = |open: &str, close: &str, levels: usize| {
        format!(r#"{{"model":"m","x":{}1{}}}"#, open.repeat(levels), close.repeat(levels))
    };
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        assert!(read(nested(open, close, 127)).is_ok());
        assert!(problem(nested(open, close, 128)).contains("deeper than 128"));
        assert!(problem(nested(open, close, 1_000_000)).contains("deeper than 128"));
    }
    problem("[".repeat(1_000_000));
    problem(format!("{{\"model\":{}", "[".repeat(1_000_000)));
}

#[test]
fn brackets_side_by_side_or_inside_strings_are_not_nesting() {
    let wide = format!(r#"{{"model":"m","x":[{}[]]}}"#, "[[]],".repeat(5000));
    assert!(read(wide).is_ok());
    let quoted = format!(r#"{{"model":"m","x":"{}\\\"[[","y":[]}}"#, r#"[{\"{["#.repeat(500));
    assert!(read(quoted).is_ok());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-z\"\\\\é\u{0}]{0,8}", inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn facts_agree_with_a_full_parse(
        before in any_json(), after in any_json(), name in "\\PC{1,12}", stream: bool, pretty: bool
    ) {
        let value = json!({"a": before, "model": name, "stream": stream, "z": after});
        let body = if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) }.unwrap();
        let facts = Facts::read(&body).unwrap();
        let model = facts.model.clone().unwrap();
        prop_assert_eq!(&model.name, &name);
        prop_assert_eq!(serde_json::from_slice::<String>(&body[model.span]).unwrap(), name);
        prop_assert_eq!(facts.stream, stream);
    }

    #[test]
    fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Facts::read(&body);
    }

    #[test]
    fn a_cut_body_is_always_refused(value in any_json(), share in 0.0..1.0_f64) {
        let body = serde_json::to_vec(&json!({"model": "m", "x": value})).unwrap();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place inside a short body")]
        let cut = (body.len() as f64 * share) as usize;
        prop_assert!(Facts::read(&body[..cut]).is_err());
    }
}
