//! Paths as clients, probes and attackers write them.

use super::{Asked, EngineCall, OPERATIONS, understand, unlisted};
use crate::backends::Api;
use crate::rejection::Rejection;

fn asked<'a>(method: &str, path: &'a str) -> Result<Asked<'a>, Rejection> {
    let known = ["m", "org/name", "org", "a/b/c", "org%2Fname", "100%"];
    understand(method, path, |name| known.contains(&name))
}

fn call<'a>(method: &str, path: &'a str) -> EngineCall<'a> {
    match asked(method, path) {
        Ok(Asked::Engine(call)) => call,
        other => panic!("{path}: {other:?}"),
    }
}

fn named(path: &str) -> (String, &str) {
    let call = call("POST", path);
    (call.model.expect("named"), call.path)
}

fn message(method: &str, path: &str) -> (u16, String) {
    let rejection = asked(method, path).expect_err("refused");
    (rejection.status(), rejection.message())
}

#[test]
fn every_listed_path_is_found_and_takes_its_method_only() {
    for operation in OPERATIONS {
        let call = call(operation.method, operation.path);
        assert_eq!(
            (call.model, call.path, call.operation),
            (None, operation.path, Some(operation))
        );
        let refused = asked("GET", operation.path).expect_err("refused");
        assert_eq!((refused.status(), refused.allow()), (405, Some("POST")), "{}", operation.path);
    }
}

#[test]
fn no_path_is_listed_twice() {
    let mut paths: Vec<_> = OPERATIONS.iter().map(|operation| operation.path).collect();
    paths.sort_unstable();
    paths.dedup();
    assert_eq!(paths.len(), OPERATIONS.len());
}

#[test]
fn http_16_own_paths_answer_head_like_get() {
    for method in ["GET", "HEAD"] {
        assert_eq!(asked(method, "/healthz"), Ok(Asked::Health));
        assert_eq!(asked(method, "/health"), Ok(Asked::Health));
        assert_eq!(asked(method, "/readyz"), Ok(Asked::Readiness));
        assert_eq!(asked(method, "/v1/models"), Ok(Asked::ModelsList));
    }
    assert_eq!(
        message("POST", "/v1/models"),
        (405, "'POST' is not allowed here; use GET, HEAD".into())
    );
    assert_eq!(message("DELETE", "/v1/models/m").0, 405);
}

#[test]
fn http_13_a_slash_in_a_name_may_be_raw_or_encoded_once() {
    for (path, name) in [
        ("/v1/models/org/name", "org/name"),
        ("/v1/models/org%2Fname", "org/name"),
        ("/v1/models/org%2fname", "org/name"),
        ("/v1/models/org%252Fname", "org%2Fname"),
        ("/v1/models/a%20b", "a b"),
    ] {
        assert_eq!(asked("GET", path), Ok(Asked::ModelObject { name: name.into() }), "{path}");
    }
    for (path, name) in [
        ("/model/org%2Fname/v1/chat/completions", "org/name"),
        ("/model/org%2fname/v1/chat/completions", "org/name"),
        ("/model/org/name/v1/chat/completions", "org/name"),
        ("/model/org%252Fname/v1/chat/completions", "org%2Fname"),
        ("/model/org/v1/chat/completions", "org"),
        ("/model/a/b/c/v1/chat/completions", "a/b/c"),
        ("/model/m/v1/chat/completions", "m"),
        ("/model/100%/v1/chat/completions", "100%"),
        ("/model/100%25/v1/chat/completions", "100%"),
    ] {
        assert_eq!(named(path), (name.into(), "/v1/chat/completions"), "{path}");
        assert_eq!(call("POST", path).operation.expect("listed").api, Api::Chat);
    }
}

#[test]
fn http_13_traversal_is_an_unknown_name() {
    assert_eq!(named("/model/org%2F..%2Fother/v1/embeddings").0, "org/../other");
    assert_eq!(named("/model/no/such/v1/embeddings"), ("no/such".into(), "/v1/embeddings"));
    assert_eq!(named("/model/nobody/prompt"), ("nobody".into(), "/prompt"));
}

#[test]
fn http_23_nothing_leads_out_of_a_models_prefix() {
    for path in [
        "/model/m/../admin",
        "/model/m/%2e%2e/admin",
        "/model/m/a/..%2fb",
        "/model/m/./x",
        "/model/m/..",
        "/model/m/..%5cx",
        "/../v1/chat/completions",
    ] {
        assert_eq!(message("POST", path).0, 404, "{path}");
    }
    assert_eq!(named("/model/m"), ("m".into(), "/"));
    assert_eq!(named("/model/m/"), ("m".into(), "/"));
    assert_eq!(named("/model/m/file..name/...").1, "/file..name/...");
    assert_eq!(message("POST", "/model/").0, 404);
    assert_eq!(message("POST", "/model//x").0, 404);
}

#[test]
fn body_28_a_model_in_the_path_needs_no_listed_path() {
    let metrics = call("GET", "/model/m/metrics");
    assert_eq!(
        (metrics.model.as_deref(), metrics.path, metrics.operation),
        (Some("m"), "/metrics", None)
    );
    assert_eq!(call("DELETE", "/v1/files/x").operation, None);
    assert_eq!(unlisted("DELETE", "/v1/files/x"), Rejection::ModelMissing);
    assert_eq!(unlisted("GET", "/favicon.ico").status(), 404);
}

#[test]
fn http_14_a_path_that_is_slightly_wrong_is_answered_with_the_right_one() {
    for path in [
        "/v1/v1/chat/completions",
        "//v1/chat/completions",
        "/v1/chat/completions/",
        "/v1//chat/completions",
        "/chat/completions",
        "/v1/chat/completion",
    ] {
        assert_eq!(call("POST", path).operation, None);
        let said = unlisted("POST", path).message();
        assert!(said.ends_with("did you mean /v1/chat/completions?"), "{path}: {said}");
    }
    let long = format!("/v1/{}", "x".repeat(1_000_000));
    assert!(unlisted("POST", &long).message().len() < 300);
}
