//! Chat completions as OpenAI's clients use them.

use flexinfer_simulator::Settings;
use serde_json::{Value, json};

use crate::client::World;

const PATH: &str = "/v1/chat/completions";

fn hello() -> Value {
    json!({"model": "llama", "messages": [{"role": "user", "content": "Say hello to the harbour"}]})
}

fn with(mut body: Value, more: &Value) -> Value {
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    body
}

#[tokio::test]
async fn an_answer_names_the_model_and_counts_its_tokens() {
    let world = World::new(Settings::named("llama")).await;
    let (status, body) = world.json(PATH, &hello()).await;
    assert_eq!(status, 200);
    let message = &body["choices"][0]["message"];
    assert!(message["content"].as_str().unwrap().contains("llama"), "{message}");
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    let usage = &body["usage"];
    let sum =
        usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap();
    assert_eq!(usage["total_tokens"], sum);
}

#[tokio::test]
async fn equal_requests_get_equal_words_from_equal_engines() {
    let first = World::new(Settings::named("llama")).await.json(PATH, &hello()).await.1;
    let second = World::new(Settings::named("llama")).await.json(PATH, &hello()).await.1;
    assert_eq!(first["choices"], second["choices"]);
    assert_eq!(first["id"], second["id"]);
    let seeded = Settings { seed: 5, ..Settings::named("llama") };
    let other = World::new(seeded).await.json(PATH, &hello()).await.1;
    assert_ne!(first["choices"], other["choices"]);
}

#[tokio::test]
async fn a_stream_says_the_same_as_a_whole_answer() {
    let world = World::new(Settings::named("llama")).await;
    let whole = world.json(PATH, &hello()).await.1;
    let asked = json!({"stream": true, "stream_options": {"include_usage": true}});
    let events = world.events(PATH, &with(hello(), &asked)).await;
    let said: String = (events.iter())
        .filter_map(|(_, chunk)| chunk["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(whole["choices"][0]["message"]["content"], said);
    assert_eq!(events.first().unwrap().1["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(events.last().unwrap().1, "[DONE]");
    let usage = &events[events.len() - 2].1;
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(usage["usage"]["completion_tokens"], whole["usage"]["completion_tokens"]);
    let finish = &events[events.len() - 3].1;
    assert_eq!(finish["choices"][0]["finish_reason"], "stop");
}

#[tokio::test]
async fn a_stream_without_usage_asked_for_has_none() {
    let world = World::new(Settings::named("llama")).await;
    let events = world.events(PATH, &with(hello(), &json!({"stream": true}))).await;
    assert!(events.iter().all(|(_, chunk)| chunk.get("usage").is_none()));
}

#[tokio::test]
async fn either_limit_ends_by_length() {
    let world = World::new(Settings::named("llama")).await;
    for name in ["max_tokens", "max_completion_tokens"] {
        let body = world.json(PATH, &with(hello(), &json!({name: 3}))).await.1;
        assert_eq!(body["choices"][0]["finish_reason"], "length", "{name}");
        assert_eq!(body["usage"]["completion_tokens"], 3, "{name}");
    }
    let exact = with(hello(), &json!({"max_tokens": 200, "ignore_eos": true}));
    let body = world.json(PATH, &exact).await.1;
    assert_eq!(body["usage"]["completion_tokens"], 200);
}

#[tokio::test]
async fn several_choices_differ_and_a_stop_sequence_is_left_out() {
    let world = World::new(Settings::named("llama")).await;
    let body = world.json(PATH, &with(hello(), &json!({"n": 2, "stop": "harbour"}))).await.1;
    let choices = body["choices"].as_array().unwrap();
    assert_eq!(choices.len(), 2);
    for choice in choices {
        assert!(!choice["message"]["content"].as_str().unwrap().contains("harbour"));
        assert_eq!(choice["finish_reason"], "stop");
    }
}

#[tokio::test]
async fn a_tool_is_called_whole_and_in_a_stream() {
    let world = World::new(Settings::named("llama")).await;
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let tools =
        json!([{"type": "function", "function": {"name": "weather", "parameters": schema}}]);
    let body =
        json!({"messages": [{"role": "user", "content": "call tool weather"}], "tools": tools});
    let whole = world.json(PATH, &body).await.1;
    let choice = &whole["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    let call = &choice["message"]["tool_calls"][0]["function"];
    assert_eq!(call["name"], "weather");
    let events = world.events(PATH, &with(body, &json!({"stream": true}))).await;
    let arguments: String = (events.iter())
        .filter_map(|(_, chunk)| {
            chunk.pointer("/choices/0/delta/tool_calls/0/function/arguments")?.as_str()
        })
        .collect();
    assert_eq!(call["arguments"], arguments);
    assert!(serde_json::from_str::<Value>(&arguments).unwrap()["city"].is_string());
}

#[tokio::test]
async fn json_is_answered_where_it_is_asked_for() {
    let world = World::new(Settings::named("llama")).await;
    let schema = json!({"type": "object", "properties": {"count": {"type": "integer"}}});
    let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
    let body = world.json(PATH, &with(hello(), &json!({"response_format": format}))).await.1;
    let text = body["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(serde_json::from_str::<Value>(text).unwrap()["count"].is_u64(), "{text}");
}

#[tokio::test]
async fn an_unknown_model_is_refused_as_vllm_does() {
    let world = World::new(Settings::named("llama")).await;
    let (status, body) = world.json(PATH, &with(hello(), &json!({"model": "other"}))).await;
    assert_eq!(status, 404);
    assert_eq!(body["error"]["message"], "The model `other` does not exist.");
    assert_eq!(body["error"]["type"], "NotFoundError");
    assert_eq!(body["error"]["param"], "model");
    assert_eq!(body["error"]["code"], 404);
}

#[tokio::test]
async fn what_cannot_be_meant_is_a_bad_request() {
    let world = World::new(Settings { context_window: 64, ..Settings::named("llama") }).await;
    for wrong in [
        json!({"model": "llama"}),
        json!({"messages": []}),
        with(hello(), &json!({"max_tokens": 0})),
        with(hello(), &json!({"n": 0})),
        with(hello(), &json!({"max_tokens": 1000})),
    ] {
        let (status, body) = world.json(PATH, &wrong).await;
        assert_eq!((status, &body["error"]["type"]), (400, &json!("BadRequestError")), "{wrong}");
    }
    let response = world.client.post(world.engine.url() + PATH).body("{").send().await.unwrap();
    assert_eq!(response.status(), 400);
}
