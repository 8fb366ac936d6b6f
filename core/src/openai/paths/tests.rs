//! Paths as clients, probes and attackers write them.

use super::{Asked, EngineCall, locate, unlisted};
use crate::backends::Api;
use crate::openai::Dialect;
use crate::openai::apis::{OPERATIONS, OWN, Page};
use crate::rejection::Rejection;

fn asked<'a>(method: &str, path: &'a str) -> Result<Asked<'a>, Rejection> {
    let known = ["m", "org/name", "org", "a/b/c", "org%2Fname", "100%"];
    locate(path, |name| known.contains(&name)).asked(method)
}

fn page(page: Page, name: &str) -> Asked<'static> {
    Asked::Page { page, name: name.to_owned() }
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

/// A path that the pattern stands for.
fn example(pattern: &str) -> String {
    match pattern.split_once('{') {
        Some((start, rest)) => format!("{start}x{}", rest.split_once('}').expect("closed").1),
        None => pattern.to_owned(),
    }
}

#[test]
fn every_listed_path_is_found_and_takes_its_methods_only() {
    for operation in OPERATIONS {
        let path = example(operation.path);
        for method in operation.methods.split(", ") {
            let call = call(method, &path);
            assert_eq!((call.model, call.path, call.operation), (None, &*path, Some(operation)));
            assert!(call.listed, "{path}");
        }
        let refused = asked("PUT", &path).expect_err("refused");
        assert_eq!((refused.status(), refused.allow()), (405, Some(operation.methods)), "{path}");
    }
    for own in OWN {
        let path = example(own.path);
        for method in own.methods.split(", ") {
            let found = asked(method, &path).expect("served");
            assert!(matches!(found, Asked::Page { page, .. } if page == own.page), "{path}");
        }
        assert_eq!(asked("PUT", &path).expect_err("refused").allow(), Some(own.methods));
    }
}

#[test]
fn every_row_of_the_table_is_reached() {
    let paths = OPERATIONS.iter().map(|operation| operation.path);
    let paths: Vec<_> = paths.chain(OWN.iter().map(|own| own.path)).collect();
    for (at, path) in paths.iter().enumerate() {
        let earlier = paths.iter().take(at).find(|earlier| super::fits(earlier, &example(path)));
        assert_eq!(earlier, None, "{path}");
    }
}

#[test]
fn a_part_of_a_path_is_one_part_and_not_none() {
    let api = |path| call("GET", path).operation.map(|operation| operation.path);
    assert_eq!(api("/v1/responses/resp_1"), Some("/v1/responses/{id}"));
    assert_eq!(api("/v1/responses/resp_1/input_items"), Some("/v1/responses/{id}/input_items"));
    assert_eq!(api("/v1/responses/a/b"), None);
    assert_eq!(message("GET", "/v1/responses/").0, 404);
    assert_eq!(message("GET", "/v1/responses/..").0, 404);
    assert_eq!(message("GET", "/v1/responses/%2e%2e/input_items").0, 404);
}

#[test]
fn every_path_is_answered_in_the_words_of_its_clients() {
    for (path, dialect) in [
        ("/v1/chat/completions", Dialect::OpenAi),
        ("/v1/messages", Dialect::Anthropic),
        ("/model/org/name/v1/messages/count_tokens", Dialect::Anthropic),
        ("/api/chat", Dialect::Ollama),
        ("/api/tags", Dialect::Ollama),
        ("/api/nothing", Dialect::Ollama),
        ("/sdapi/v1/txt2img", Dialect::StableDiffusion),
        ("/model/m/prompt", Dialect::ComfyUi),
        ("/model/m/api/prompt", Dialect::ComfyUi),
        ("/elsewhere", Dialect::OpenAi),
    ] {
        let known = |name: &str| ["m", "org/name"].contains(&name);
        assert_eq!(locate(path, known).dialect(), dialect, "{path}");
    }
}

#[test]
fn what_may_be_tried_again_at_any_length_is_what_is_held_whole() {
    let held = |method, path| call(method, path).operation.expect("listed").is_held_whole();
    assert!(held("POST", "/v1/chat/completions"));
    assert!(held("POST", "/v1/responses/resp_1/cancel"));
    assert!(held("POST", "/upload/image"), "its client may be named in it");
    assert!(!held("POST", "/v1/audio/transcriptions"));
    assert!(!held("POST", "/sdapi/v1/img2img"));
}

#[test]
fn a_models_prefix_leads_to_its_engine_and_not_to_our_own_pages() {
    for path in ["/model/m/v1/models", "/model/m/health", "/model/m/api/tags"] {
        assert_eq!(call("GET", path).operation, None, "{path}");
    }
}

#[test]
fn below_a_models_prefix_what_is_another_engines_api_may_be_read() {
    let page = call("GET", "/model/m/api/embeddings");
    assert_eq!((page.operation, page.listed), (None, false), "ComfyUI's page asks for it");
    assert_eq!(message("GET", "/api/embeddings").0, 405, "there is no engine that could be meant");
    assert_eq!(message("PUT", "/model/m/api/embeddings").0, 405);
    let socket = call("HEAD", "/model/m/ws");
    assert_eq!((socket.operation, socket.listed), (call("GET", "/ws").operation, true), "no page");
    assert_eq!(message("HEAD", "/ws").0, 405);
}

#[test]
fn http_16_own_paths_answer_head_like_get() {
    for method in ["GET", "HEAD"] {
        assert_eq!(asked(method, "/healthz"), Ok(page(Page::Health, "")));
        assert_eq!(asked(method, "/health"), Ok(page(Page::Health, "")));
        assert_eq!(asked(method, "/readyz"), Ok(page(Page::Readiness, "")));
        assert_eq!(asked(method, "/v1/models"), Ok(page(Page::Models, "")));
        assert_eq!(asked(method, "/api/tags"), Ok(page(Page::OllamaTags, "")));
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
        assert_eq!(asked("GET", path), Ok(page(Page::Model, name)), "{path}");
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
    assert_eq!(named("/model/no/such/sdapi/v1/txt2img"), ("no/such".into(), "/sdapi/v1/txt2img"));
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
        "/v1/chat/%63ompletions",
        "/V1/Chat/Completions",
        "/%63hat/completions",
    ] {
        let said = match asked("POST", path) {
            Ok(Asked::Engine(call)) if !call.listed => unlisted("POST", path).message(),
            Ok(other) => panic!("{path}: {other:?}"),
            Err(rejection) => rejection.message(),
        };
        assert!(said.ends_with("did you mean /v1/chat/completions?"), "{path}: {said}");
    }
    let long = format!("/v1/{}", "x".repeat(1_000_000));
    assert!(unlisted("POST", &long).message().len() < 300);
}

#[test]
fn http_14_another_spelling_of_an_operation_is_no_second_door_to_it() {
    for path in [
        "/model/m/v1/chat/%63ompletions",
        "/model/m/%76%31/%63%68%61%74/%63%6f%6d%70%6c%65%74%69%6f%6e%73",
        "/model/m/v1%2Fchat/completions",
        "/model/m//v1/chat/completions",
        "/model/m/v1/chat/completions//",
        "/model/m/v1/CHAT/completions",
        "/model/m/%63hat/completions",
    ] {
        assert_eq!(message("POST", path).0, 404, "{path}");
    }
    let said = message("POST", "/model/m/%63ompletion").1;
    assert!(said.ends_with("did you mean /completion?"), "{said}");
    // Its engine would decode it to another class, which has the same rules.
    assert_eq!(
        call("GET", "/model/m/object_info/My%20Node").operation.expect("listed").api,
        Api::ComfyUi
    );
    assert_eq!(call("GET", "/model/m/a%20page//x/").operation, None);
}

#[test]
fn http_14_what_engines_offer_without_v1_has_the_same_rules() {
    for (path, api) in [
        ("/model/m/chat/completions", Api::Chat),
        ("/model/m/completions", Api::Completions),
        ("/model/m/responses", Api::Responses),
    ] {
        let call = call("POST", path);
        let model = call.model.as_deref();
        assert_eq!((model, call.operation.map(|found| found.api)), (Some("m"), Some(api)));
        assert!(!call.listed && path.ends_with(call.path), "{path}");
    }
    assert_eq!(call("GET", "/model/m/embeddings").operation, None, "a page of ComfyUI's");
    assert_eq!(call("GET", "/model/m/completions").operation, None, "a page of an engine's");
}
