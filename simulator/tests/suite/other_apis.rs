//! The APIs that are nobody's but their engine's: Ollama, the Stable Diffusion web UI, tokens.

use flexinfer_simulator::Settings;
use serde_json::{Value, json};

use crate::client::World;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

async fn world() -> World {
    World::new(Settings::named("m")).await
}

/// The lines of a stream, each a JSON object.
async fn lines(world: &World, path: &str, body: &Value) -> Vec<Value> {
    let response = world.post(path, body).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/x-ndjson");
    let text = response.text().await.unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn ollama_streams_lines_unless_it_is_told_not_to() {
    let world = world().await;
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}],
                      "options": {"num_predict": 6}});
    let streamed = lines(&world, "/api/chat", &chat).await;
    let words: String =
        streamed.iter().filter_map(|line| line["message"]["content"].as_str()).collect();
    let last = streamed.last().unwrap();
    assert_eq!((&last["done"], &last["eval_count"]), (&json!(true), &json!(6)));
    assert!(streamed.len() > 3 && streamed[0]["done"] == false);
    let mut whole = chat.clone();
    whole["stream"] = json!(false);
    let (status, body) = world.json("/api/chat", &whole).await;
    assert_eq!((status, &body["message"]["content"]), (200, &json!(words)));
    let generated = json!({"model": "m", "prompt": "Once", "stream": false});
    assert!(
        !world.json("/api/generate", &generated).await.1["response"].as_str().unwrap().is_empty()
    );
    let embedded = world.json("/api/embed", &json!({"model": "m", "input": ["a", "b"]})).await.1;
    assert_eq!(embedded["embeddings"].as_array().unwrap().len(), 2);
    let (status, refused) =
        world.json("/api/chat", &json!({"model": "other", "messages": []})).await;
    assert_eq!((status, refused["error"].is_string()), (404, true));
    let tags: Value = world.get("/api/tags").await.json().await.unwrap();
    assert_eq!(tags["models"][0]["model"], "m");
}

#[tokio::test]
async fn texts_become_tokens_and_texts_again() {
    let world = world().await;
    let (_, cut) = world.json("/tokenize", &json!({"model": "m", "prompt": "two words"})).await;
    assert_eq!((&cut["count"], cut["tokens"].as_array().unwrap().len()), (&json!(2), 2));
    let (_, cut) = world.json("/tokenize", &json!({"content": "two words"})).await;
    let (_, joined) = world.json("/detokenize", &json!({"tokens": cut["tokens"]})).await;
    assert_eq!(joined["content"], "t ");
    assert_eq!(world.post("/tokenize", &json!({})).await.status(), 400);
}

#[tokio::test]
async fn the_web_ui_paints_and_paints_over() {
    use base64::Engine as _;
    let decode = |text: &Value| {
        base64::engine::general_purpose::STANDARD.decode(text.as_str().unwrap()).unwrap()
    };
    let world = world().await;
    let ask = json!({"prompt": "a boat", "width": 64, "height": 64, "steps": 1, "batch_size": 2});
    let (status, body) = world.json("/sdapi/v1/txt2img", &ask).await;
    assert_eq!((status, body["images"].as_array().unwrap().len()), (200, 2));
    assert!(decode(&body["images"][0]).starts_with(PNG));
    let over = json!({"prompt": "at night", "init_images": [body["images"][0]], "steps": 1});
    let (status, body) = world.json("/sdapi/v1/img2img", &over).await;
    assert_eq!(status, 200);
    assert!(decode(&body["images"][0]).starts_with(PNG));
    assert_eq!(world.post("/sdapi/v1/img2img", &json!({})).await.status(), 400);
}
