//! The other APIs: what each answers at its best, and their refusals where they differ.

use flexinfer_simulator::Settings;
use serde_json::{Value, json};

use crate::client::{World, reach};

async fn world() -> World {
    World::new(Settings::named("m")).await
}

#[tokio::test]
async fn models_and_adapters_are_listed_and_answer_to_their_names() {
    let world = world().await;
    let load = json!({"lora_name": "poet", "lora_path": "/adapters/poet"});
    let loaded = world.post("/v1/load_lora_adapter", &load).await;
    assert_eq!(loaded.text().await.unwrap(), "Success: LoRA adapter 'poet' added successfully.");
    let again = world.json("/v1/load_lora_adapter", &load).await;
    assert_eq!((again.0, &again.1["error"]["type"]), (400, &json!("InvalidUserInput")));
    let listed: Value = world.get("/v1/models").await.json().await.unwrap();
    assert_eq!(listed["data"][1]["id"], "poet");
    assert_eq!(listed["data"][1]["parent"], "m");
    assert_eq!(world.get("/v1/models/poet").await.status(), 200);
    assert_eq!(world.get("/v1/models/other").await.status(), 404);
    let ask = json!({"model": "poet", "prompt": "x"});
    assert_eq!(world.json("/v1/completions", &ask).await.1["model"], "poet");
    let unload = json!({"lora_name": "poet"});
    assert_eq!(world.post("/v1/unload_lora_adapter", &unload).await.status(), 200);
    assert_eq!(world.post("/v1/unload_lora_adapter", &unload).await.status(), 404);
    assert_eq!(world.post("/v1/completions", &ask).await.status(), 404);
}

#[tokio::test]
async fn completions_answer_each_prompt_and_stream_the_same() {
    let world = world().await;
    let body = json!({"prompt": ["one", "two"], "max_tokens": 9});
    let whole = world.json("/v1/completions", &body).await.1;
    assert_eq!(whole["choices"].as_array().unwrap().len(), 2);
    let mut streamed = body.clone();
    streamed["stream"] = json!(true);
    let events = world.events("/v1/completions", &streamed).await;
    let second: String = (events.iter())
        .filter(|(_, chunk)| chunk["choices"][0]["index"] == 1)
        .filter_map(|(_, chunk)| chunk["choices"][0]["text"].as_str())
        .collect();
    assert_eq!(whole["choices"][1]["text"], second);
}

#[tokio::test]
async fn embeddings_come_as_numbers_or_packed() {
    let world = world().await;
    let plain = json!({"input": ["cat", "dog"], "dimensions": 16});
    let body = world.json("/v1/embeddings", &plain).await.1;
    assert_eq!(body["data"][1]["embedding"].as_array().unwrap().len(), 16);
    let packed = json!({"input": "cat", "dimensions": 16, "encoding_format": "base64"});
    let body = world.json("/v1/embeddings", &packed).await.1;
    assert_eq!(body["data"][0]["embedding"].as_str().unwrap().len(), 88, "64 bytes in base64");
}

#[tokio::test]
async fn the_document_that_shares_words_ranks_first() {
    let world = world().await;
    let documents = ["stock prices fell", "the cat sat on the mat"];
    let ask = json!({"query": "where is the cat", "documents": documents, "top_n": 1});
    let body = world.json("/v1/rerank", &ask).await.1;
    assert_eq!(body["results"][0]["index"], 1);
    assert_eq!(body["results"].as_array().unwrap().len(), 1);
    let pairs = json!({"text_1": "the cat", "text_2": documents});
    let scores = world.json("/v1/score", &pairs).await.1;
    assert!(scores["data"][1]["score"].as_f64() > scores["data"][0]["score"].as_f64());
}

#[tokio::test]
async fn moderations_flag_a_bad_word() {
    let body = world().await.json("/v1/moderations", &json!({"input": ["hi", "kill it"]})).await.1;
    assert_eq!(body["results"][0]["flagged"], false);
    assert_eq!(body["results"][1]["flagged"], true);
}

#[tokio::test]
async fn a_response_is_kept_gone_on_from_and_deleted() {
    let world = world().await;
    let first = world.json("/v1/responses", &json!({"input": "hello"})).await.1;
    assert_eq!(first["status"], "completed");
    let id = first["id"].as_str().unwrap();
    let path = format!("/v1/responses/{id}");
    let shown: Value = world.get(&path).await.json().await.unwrap();
    assert_eq!(shown, first);
    let next = json!({"input": "and now?", "previous_response_id": id});
    let next = world.json("/v1/responses", &next).await.1;
    assert!(next["usage"]["input_tokens"].as_u64() > first["usage"]["total_tokens"].as_u64());
    let deleted = world.client.delete(world.engine.url() + &path).send().await.unwrap();
    assert_eq!(deleted.json::<Value>().await.unwrap()["deleted"], true);
    assert_eq!(world.get(&path).await.status(), 404);
    let synchronous = format!("/v1/responses/{}/cancel", next["id"].as_str().unwrap());
    assert_eq!(world.post(&synchronous, &json!({})).await.status(), 400);
}

#[tokio::test]
async fn a_response_streams_its_events_in_sequence() {
    let world = world().await;
    let whole = world.json("/v1/responses", &json!({"input": "hello"})).await.1;
    let events = world.events("/v1/responses", &json!({"input": "hello", "stream": true})).await;
    for (at, (name, content)) in events.iter().enumerate() {
        assert_eq!(content["sequence_number"], at);
        assert_eq!(content["type"], name.as_str());
    }
    let deltas = events.iter().filter(|(name, _)| name == "response.output_text.delta");
    let said: String = deltas.filter_map(|(_, content)| content["delta"].as_str()).collect();
    assert_eq!(whole["output"][0]["content"][0]["text"], said);
    let (name, last) = events.last().unwrap();
    assert_eq!(
        (name.as_str(), &last["response"]["status"]),
        ("response.completed", &json!("completed"))
    );
    let path = format!("/v1/responses/{}", last["response"]["id"].as_str().unwrap());
    assert_eq!(world.get(&path).await.status(), 200);
}

#[tokio::test]
async fn work_in_the_background_is_cancelled() {
    let mut settings = Settings::named("m");
    settings.timings.token = std::time::Duration::from_secs(1000);
    let world = World::new(settings).await;
    let ask = json!({"input": "long", "background": true});
    let begun = world.json("/v1/responses", &ask).await.1;
    assert_eq!(begun["status"], "queued");
    reach("it runs", || world.engine.running() == 1).await;
    let path = format!("/v1/responses/{}/cancel", begun["id"].as_str().unwrap());
    assert_eq!(world.json(&path, &json!({})).await.1["status"], "cancelled");
    reach("its slot is free", || world.engine.running() == 0).await;
}

#[tokio::test]
async fn pictures_are_pngs_that_can_be_edited() {
    let world = world().await;
    let ask = json!({"prompt": "a red boat", "size": "48x32", "n": 2, "response_format": "url"});
    let body = world.json("/v1/images/generations", &ask).await.1;
    let url = body["data"][1]["url"].as_str().unwrap();
    assert!(url.starts_with("data:image/png;base64,iVBOR"), "{}", &url[..40]);
    let png = paint(&world).await;
    let (model, prompt) = (("model", "", &b"m"[..]), ("prompt", "", &b"add a moon"[..]));
    let image = ("image", "boat.png", &png[..]);
    // Larger than what web frameworks take unless told otherwise.
    let large = vec![0; 3_000_000];
    let mask = ("mask", "mask.png", &large[..]);
    let edited = world.send_form("/v1/images/edits", &[mask, model, prompt, image]).await;
    let edited: Value = edited.json().await.unwrap();
    assert!(edited["data"][0]["b64_json"].as_str().unwrap().starts_with("iVBOR"));
    assert_eq!(world.send_form("/v1/images/edits", &[model, prompt]).await.status(), 400);
}

async fn paint(world: &World) -> Vec<u8> {
    use base64::Engine as _;
    let ask = json!({"prompt": "a boat", "size": "64x64"});
    let body = world.json("/v1/images/generations", &ask).await.1;
    let text = body["data"][0]["b64_json"].as_str().unwrap();
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

#[tokio::test]
async fn speech_is_a_wav_that_is_heard_again() {
    let world = world().await;
    let ask = json!({"model": "m", "input": "one two three", "voice": "alloy"});
    let spoken = world.post("/v1/audio/speech", &ask).await;
    assert_eq!(spoken.headers()["content-type"], "audio/wav");
    let wav = spoken.bytes().await.unwrap();
    let path = "/v1/audio/transcriptions";
    let (model, file) = (("model", "", &b"m"[..]), ("file", "note.wav", &wav[..]));
    let heard =
        world.send_form(path, &[model, file, ("response_format", "", b"verbose_json")]).await;
    let heard: Value = heard.json().await.unwrap();
    assert!((heard["duration"].as_f64().unwrap() - 0.54).abs() < 0.02, "{heard}");
    let subtitles = world.send_form(path, &[model, file, ("response_format", "", b"vtt")]).await;
    assert!(subtitles.text().await.unwrap().starts_with("WEBVTT"));
    let mp3 = json!({"input": "one", "response_format": "mp3"});
    assert_eq!(world.post("/v1/audio/speech", &mp3).await.status(), 400);
}

#[tokio::test]
async fn anthropic_messages_whole_and_streamed() {
    let world = world().await;
    let ask = json!({"model": "m", "max_tokens": 5, "system": "Be kind.",
                     "messages": [{"role": "user", "content": "hello"}]});
    let whole = world.json("/v1/messages", &ask).await.1;
    assert_eq!((&whole["type"], &whole["stop_reason"]), (&json!("message"), &json!("max_tokens")));
    assert_eq!(whole["usage"]["output_tokens"], 5);
    let counted = world.json("/v1/messages/count_tokens", &ask).await.1;
    assert_eq!(counted["input_tokens"], whole["usage"]["input_tokens"]);
    let mut streamed = ask.clone();
    streamed["stream"] = json!(true);
    let events = world.events("/v1/messages", &streamed).await;
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names[..3], ["message_start", "content_block_start", "ping"]);
    assert_eq!(names[names.len() - 3..], ["content_block_stop", "message_delta", "message_stop"]);
    let said: String =
        events.iter().filter_map(|(_, content)| content["delta"]["text"].as_str()).collect();
    assert_eq!(whole["content"][0]["text"], said);
}

#[tokio::test]
async fn anthropic_refusals_have_anthropic_shape() {
    let world = world().await;
    let ask = json!({"model": "other", "max_tokens": 5, "messages": []});
    let (status, body) = world.json("/v1/messages", &ask).await;
    assert_eq!((status, &body["error"]["type"]), (404, &json!("not_found_error")));
    let (status, body) = world.json("/v1/messages", &json!({"messages": []})).await;
    assert_eq!((status, &body["error"]["type"]), (400, &json!("invalid_request_error")));
}

#[tokio::test]
async fn metrics_show_what_was_done_under_vllm_names() {
    let world = world().await;
    let long = "word ".repeat(40);
    let ask = json!({"prompt": long, "max_tokens": 4});
    for _ in 0..2 {
        world.json("/v1/completions", &ask).await;
    }
    let page = world.get("/metrics").await.text().await.unwrap();
    assert!(page.contains("vllm:generation_tokens_total{model_name=\"m\"} 8"), "{page}");
    assert!(page.contains("vllm:prefix_cache_hits_total{model_name=\"m\"} 32"), "{page}");
    assert!(page.contains("vllm:time_to_first_token_seconds_count{model_name=\"m\"} 2"), "{page}");
}
