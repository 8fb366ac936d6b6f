//! There is one way in for everything that makes text: no spelling of a key, a content type or a path leads
//! past the rules.

use flexinfer_core::fleet::Served;
use flexinfer_core::limits::{Admission, Clamp};
use flexinfer_gateway::rules::Rules;
use flexinfer_testkit::origin::Origin;

use crate::callers::{ask, with_keys};
use crate::form_bodies::{END, MODEL, TRANSCRIPTIONS, TYPE, part};
use crate::world::{World, model};

const CHAT: &str = "/v1/chat/completions";
const BOB: (&str, &str) = ("Authorization", "Bearer bob");

/// An engine with the model `m`, which Bob may use, and another one, which he may not.
async fn guarded() -> (Origin, World) {
    let engine = Origin::answering("{}").await.unwrap();
    let models = vec![model("m", None), model("other", None)];
    let world = World::ruled(engine.address, models, with_keys());
    (engine, world)
}

/// A model whose context holds 4,096 tokens, and rules that keep requests to that.
async fn bounded(admission: Option<Admission>) -> (Origin, World) {
    let engine = Origin::answering("{}").await.unwrap();
    let mut served: Served = model("m", Some("engine-name"));
    served.effective.context_window = Some(4096);
    served.effective.context_bounded = true;
    let rules = Rules {
        validate: true,
        clamp: Some(Clamp { prompt_reserve: 512 }),
        admission,
        ..Rules::default()
    };
    let world = World::ruled(engine.address, vec![served], rules);
    (engine, world)
}

#[tokio::test]
async fn body_01_a_key_in_another_case_is_no_way_to_another_model() {
    let (engine, world) = guarded().await;
    for text in [
        r#"{"model":"m","Model":"other"}"#,
        r#"{"MODEL":"other","model":"m"}"#,
        r#"{"model":"m","mod\u0045l":"other"}"#,
        r#"{"model":"m","max_to\u212aens":1000000}"#,
    ] {
        for path in [CHAT, "/api/chat", "/model/m/v1/completions"] {
            let refused = ask(&world, "POST", path, &[BOB], text.as_bytes()).await;
            assert_eq!(refused.status(), 400, "{path}: {text}");
            let code = refused.head.header("x-flexinfer-error-code");
            assert_eq!(code, Some("misspelled_key"), "{path}: {text}");
        }
    }
    let coded = "Content-Disposition: form-data; name*=utf-8''model";
    let form = [&part(MODEL, "m"), &part(coded, "other"), END].concat();
    let refused = ask(&world, "POST", TRANSCRIPTIONS, &[BOB, TYPE], form.as_bytes()).await;
    assert_eq!(refused.json()["error"]["code"], "invalid_multipart");
    assert_eq!(engine.requests().len(), 0);
}

#[tokio::test]
async fn http_10_what_is_called_something_else_than_json_is_not_passed_on_unread() {
    let (engine, world) = guarded().await;
    let body = br#"{"model":"other","messages":[]}"#;
    let long = format!("{{\"model\":\"other\",\"x\":\"{}\"}}", "x".repeat(3 << 20));
    for (path, kind, body) in [
        (CHAT, "application/octet-stream", &body[..]),
        (CHAT, "application/octet-stream", long.as_bytes()),
        (CHAT, "multipart/form-data; boundary=cut", body),
        ("/model/m/api/chat", "audio/wav", body),
        (TRANSCRIPTIONS, "multipart/related; boundary=cut", body),
    ] {
        let headers = [BOB, ("X-Model-ID", "m"), ("Content-Type", kind)];
        let refused = ask(&world, "POST", path, &headers, body).await;
        let code = refused.head.header("x-flexinfer-error-code");
        assert_eq!((refused.status(), code), (415, Some("unsupported_content_type")), "{kind}");
    }
    assert_eq!(engine.requests().len(), 0);
    // What no table has is between the client and the engine.
    let headers = [BOB, ("Content-Type", "application/octet-stream")];
    assert_eq!(ask(&world, "POST", "/model/m/files", &headers, b"bytes").await.status(), 200);
    let web_form = [BOB, ("Content-Type", "application/x-www-form-urlencoded")];
    assert_eq!(ask(&world, "POST", CHAT, &web_form, br#"{"model":"m"}"#).await.status(), 200);
    let refused = ask(&world, "POST", CHAT, &web_form, b"model=m&prompt=x").await;
    assert_eq!(refused.json()["error"]["code"], "invalid_json");
}

#[tokio::test]
async fn http_14_another_spelling_of_a_path_is_answered_with_the_right_one() {
    let (engine, world) = bounded(None).await;
    for path in [
        "/model/m/v1/chat/%63ompletions",
        "/model/m//v1/chat/completions",
        "/model/m/v1/chat/completions/",
        "/model/m/%63hat/completions",
    ] {
        let refused = ask(&world, "POST", path, &[], br#"{"model":"m"}"#).await;
        assert_eq!(refused.status(), 404, "{path}");
        let said = refused.json()["error"]["message"].to_string();
        assert!(said.contains("did you mean /v1/chat/completions?"), "{path}: {said}");
    }
    let named = [("X-Model-ID", "m")];
    let refused = ask(&world, "POST", "/v1/chat/%63ompletions", &named, b"{}").await;
    assert_eq!(refused.status(), 404);
    assert_eq!(engine.requests().len(), 0);
}

#[tokio::test]
async fn http_14_a_path_that_engines_have_beside_the_listed_one_has_its_rules() {
    let (engine, world) = bounded(None).await;
    let chat = "/model/m/chat/completions";
    let refused = ask(&world, "POST", chat, &[], br#"{"messages":1}"#).await;
    assert_eq!(refused.json()["error"]["code"], "validation_error");
    let messages = r#""messages":[{"role":"user","content":"x"}]"#;
    let long = format!("{{{messages},\"max_tokens\":100000}}");
    let answer = ask(&world, "POST", chat, &[], long.as_bytes()).await;
    assert!(answer.head.header("x-flexinfer-maxtokens-clamped").is_some());
    let sent = engine.requests().pop().unwrap();
    assert_eq!(sent.head.target(), "/chat/completions");
    let unnamed = ask(&world, "POST", "/chat/completions", &[], br#"{"model":"m"}"#).await;
    assert_eq!(unnamed.status(), 404, "only header or path name a model there");
}

#[tokio::test]
async fn http_14_what_fits_into_no_context_fits_by_no_other_path() {
    let admission = Admission { safety_margin_percent: 5, default_max_tokens: 256 };
    let (engine, world) = bounded(Some(admission)).await;
    let text = "word ".repeat(20_000);
    for body in
        [format!(r#"{{"prompt":"{text}"}}"#), format!(r#"{{"model":"m","prompt":"{text}"}}"#)]
    {
        let refused = ask(&world, "POST", "/model/m/invocations", &[], body.as_bytes()).await;
        assert_eq!(refused.json()["error"]["code"], "context_window_exceeded");
    }
    // What can be read in two ways fits in one of them.
    let utf_16: Vec<u8> =
        "\u{feff}{\"prompt\":\"x\"}".encode_utf16().flat_map(u16::to_be_bytes).collect();
    for (body, code) in [
        (&br#"{"prompt":"x","max_tokens":1,"max_tokens":100000}"#[..], "duplicate_key"),
        (br#"{"prompt":"x","Max_Tokens":100000}"#, "misspelled_key"),
        (br#" {"prompt":"x","top_p":NaN}"#, "invalid_json"),
        (&utf_16, "invalid_json"),
    ] {
        let refused = ask(&world, "POST", "/model/m/invocations", &[], body).await;
        let told = refused.head.header("x-flexinfer-error-code");
        assert_eq!((refused.status(), told), (400, Some(code)));
    }
    // Nor is it another length for being called something else.
    let object = br#"{"prompt":"x","max_tokens":100000}"#;
    let long = format!(r#"{{"x":"{}","prompt":"x","max_tokens":100000}}"#, "x".repeat(3 << 20));
    let form = ["{\"prompt\":\"x\",\"max_tokens\":100000}\r\n", &part(MODEL, "m"), END].concat();
    for (kind, coding, body, code) in [
        ("image/png", "identity", &object[..], "unsupported_content_type"),
        ("application/octet-stream", "identity", object, "unsupported_content_type"),
        ("application/octet-stream", "identity", long.as_bytes(), "unsupported_content_type"),
        (TYPE.1, "identity", object, "invalid_multipart"),
        (TYPE.1, "identity", form.as_bytes(), "invalid_multipart"),
        ("application/json", "gzip", b"\x1f\x8b\x08", "compressed_body"),
        ("application/octet-stream", "gzip", b"\x1f\x8b\x08", "compressed_body"),
        ("application/json", "br", br#"{"prompt":"x","max_tokens":1}"#, "compressed_body"),
    ] {
        let headers = [("Content-Type", kind), ("Content-Encoding", coding)];
        let refused = ask(&world, "POST", "/model/m/invocations", &headers, body).await;
        let told = refused.head.header("x-flexinfer-error-code");
        assert_eq!(told, Some(code), "{kind}, {coding}: {}", refused.text());
    }
    assert_eq!(engine.requests().len(), 0);
    let sound = [&b"RIFF"[..], long.as_bytes()].concat();
    let headers = [("Content-Type", "audio/wav")];
    let passed = ask(&world, "POST", "/model/m/invocations", &headers, &sound).await;
    assert_eq!(passed.status(), 200, "{}", passed.text());
    assert!(engine.requests().pop().unwrap().body == sound, "a sound is none");
    for body in [&br#"[{"a":1,"a":2}]"#[..], b"a=b&a=c", b"\x00\x01"] {
        assert_eq!(ask(&world, "POST", "/model/m/invocations", &[], body).await.status(), 200);
        assert_eq!(engine.requests().pop().unwrap().body, body, "it says nothing of lengths");
    }
    let (engine, world) = bounded(None).await;
    let twice = br#"{"prompt":"x","max_tokens":1,"max_tokens":2}"#;
    assert_eq!(ask(&world, "POST", "/model/m/invocations", &[], twice).await.status(), 200);
    assert_eq!(engine.requests().pop().unwrap().body, twice, "and no limit depends on it");
    let body = br#"{"prompt":"x", "anything": 1}"#;
    assert_eq!(ask(&world, "POST", "/model/m/invocations", &[], body).await.status(), 200);
    assert_eq!(
        engine.requests()[1].body,
        body,
        "a body that names no model is not given one there"
    );
}
