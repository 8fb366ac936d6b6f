//! Lists of models, in the shapes of those who ask, without a word to any engine.

use std::net::{Ipv4Addr, SocketAddr};

use flexinfer_core::fleet::Served;
use serde_json::{Value, json};

use crate::callers::{ask, with_keys};
use crate::world::{World, model};

const ANTHROPIC: (&str, &str) = ("anthropic-version", "2023-06-01");

/// Engines that are nowhere: a test address that answers nothing.
fn black_hole() -> SocketAddr {
    (Ipv4Addr::new(192, 0, 2, 1), 9).into()
}

fn models() -> Vec<Served> {
    let mut parked = model("parked", None);
    parked.effective.parked = true;
    let mut qwen = model("qwen", Some("engines-own"));
    qwen.effective.context_window = Some(8192);
    qwen.effective.max_output_tokens = Some(1024);
    vec![qwen, model("llama", None), parked]
}

fn names(body: &Value, list: &str, name: &str) -> Vec<String> {
    let items = body[list].as_array().unwrap().iter();
    items.map(|item| item[name].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn http_19_lists_come_at_once_whatever_the_engines_do() {
    let world = World::new(black_hole(), models());
    for (path, headers, list, name) in [
        ("/v1/models", &[][..], "data", "id"),
        ("/v1/models", &[ANTHROPIC][..], "data", "id"),
        ("/api/tags", &[][..], "models", "model"),
    ] {
        let answer = ask(&world, "GET", path, headers, b"").await;
        assert_eq!(answer.status(), 200, "{path}");
        assert_eq!(names(&answer.json(), list, name), ["llama", "qwen"], "{path}");
    }
    assert_eq!(ask(&world, "GET", "/api/ps", &[], b"").await.json(), json!({"models": []}));
    assert_eq!(world.desk.booked(), 0);
}

#[tokio::test]
async fn one_model_is_shown_in_the_shape_that_is_asked_for() {
    let world = World::new(black_hole(), models());
    let shown = ask(&world, "GET", "/v1/models/qwen", &[], b"").await.json();
    assert_eq!((&shown["id"], &shown["object"]), (&json!("qwen"), &json!("model")));
    assert_eq!(shown["metadata"]["context_window"], 8192);
    assert_eq!(shown["metadata"]["max_output_tokens"], 1024);
    let shown = ask(&world, "GET", "/v1/models/qwen", &[ANTHROPIC], b"").await.json();
    assert_eq!((&shown["type"], &shown["display_name"]), (&json!("model"), &json!("qwen")));
    let body = br#"{"model":"qwen:latest"}"#;
    let shown = ask(&world, "POST", "/api/show", &[], body).await.json();
    assert_eq!(shown["model_info"]["vllm.context_length"], 8192);
    for (body, status) in [
        (&b"{\"name\":\"llama\"}"[..], 200),
        (b"{\"model\":\"parked\"}", 404),
        (b"{\"model\":\"nobody\"}", 404),
        (b"{}", 400),
        (b"", 400),
        (b"nonsense", 400),
    ] {
        let answer = ask(&world, "POST", "/api/show", &[], body).await;
        assert_eq!(answer.status(), status, "{}", answer.text());
        assert_eq!(answer.json()["error"].is_string(), status != 200);
    }
    let version = ask(&world, "GET", "/api/version", &[], b"").await.json();
    assert!(version["version"].as_str().unwrap().starts_with("0."));
}

#[tokio::test]
async fn http_05_a_caller_sees_its_own_models_in_every_list() {
    let world = World::ruled(black_hole(), models(), with_keys());
    let lists = |key: &'static str| {
        let world = &world;
        async move {
            let key = format!("Bearer {key}");
            let headers = [("Authorization", key.as_str())];
            let openai = ask(world, "GET", "/v1/models", &headers, b"").await;
            let tags = ask(world, "GET", "/api/tags", &headers, b"").await;
            (names(&openai.json(), "data", "id"), names(&tags.json(), "models", "name"))
        }
    };
    let (alice, bob) = tokio::join!(lists("alice"), lists("bob"));
    assert_ne!(alice, bob);
    assert_eq!((&alice.0, &bob.0), (&alice.1, &bob.1));
    let refused = ask(&world, "GET", "/api/tags", &[], b"").await;
    assert_eq!(refused.status(), 401);
    assert!(refused.json()["error"].is_string());
    assert_eq!(ask(&world, "GET", "/healthz", &[], b"").await.status(), 200);
}
