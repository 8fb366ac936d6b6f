//! Ollama's own API: `/api/chat`, `/api/generate`, `/api/embed` and what tells of its one model.

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{self, Event, Wording, set};
use super::call::Call;
use super::chat::reason;
use super::completions::Prompts;
use super::embeddings::DIMENSIONS;
use super::prompt::Prompt;
use super::refusal::Refusal;
use crate::engine::Engine;
use crate::generation::{Ask, Content, Generation, Piece};
use crate::vectors::embed;

/// Every answer is said to be of this moment, so that equal questions have equal answers.
const MADE_AT: &str = "2025-01-01T00:00:00Z";
/// The version whose API this follows.
const VERSION: &str = "0.12.0";

#[derive(Debug, Deserialize)]
struct ChatRequest {
    model: Option<String>,
    #[serde(default)]
    messages: Vec<Value>,
    stream: Option<bool>,
    #[serde(default)]
    options: Options,
}

#[derive(Debug, Deserialize)]
struct GenerateRequest {
    model: Option<String>,
    #[serde(default)]
    prompt: String,
    system: Option<String>,
    stream: Option<bool>,
    #[serde(default)]
    options: Options,
}

#[derive(Debug, Default, Deserialize)]
struct Options {
    num_predict: Option<i64>,
    seed: Option<i64>,
    #[serde(default)]
    stop: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct EmbedRequest {
    model: Option<String>,
    input: Prompts,
}

/// The paths of this API.
pub(super) fn router() -> Router<Arc<Engine>> {
    Router::new()
        .route("/api/chat", post(chat))
        .route("/api/generate", post(generate))
        .route("/api/embed", post(embed_texts))
        .route("/api/tags", get(tags))
        .route("/api/version", get(version))
}

async fn chat(call: Call) -> Response {
    let asked = async {
        call.admit()?;
        let request: ChatRequest = call.json()?;
        let prompt = Prompt::from_messages(&request.messages);
        let field = Field::Message;
        run(&call, request.model, prompt, request.stream, request.options, field).await
    };
    asked.await.unwrap_or_else(|refusal: Refusal| refusal.in_ollama_shape())
}

async fn generate(call: Call) -> Response {
    let asked = async {
        call.admit()?;
        let request: GenerateRequest = call.json()?;
        let mut prompt = Prompt::default();
        if let Some(system) = &request.system {
            prompt.add("system", &json!(system));
        }
        prompt.add("user", &json!(request.prompt));
        let field = Field::Response;
        run(&call, request.model, prompt, request.stream, request.options, field).await
    };
    asked.await.unwrap_or_else(|refusal: Refusal| refusal.in_ollama_shape())
}

async fn run(
    call: &Call,
    model: Option<String>,
    prompt: Prompt,
    stream: Option<bool>,
    options: Options,
    field: Field,
) -> Result<Response, Refusal> {
    let model = call.model(model.as_deref())?;
    let mut generation = call.generate(Ask {
        model: model.clone(),
        prompt: prompt.text,
        topics: vec![prompt.topic],
        limit: options.num_predict.and_then(|limit| usize::try_from(limit).ok()),
        stop: options.stop,
        ignores_end: false,
        seed: options.seed.unwrap_or(0).cast_unsigned(),
        content: Content::Words,
    })?;
    let wording = LineWording { model, field };
    if stream != Some(false) {
        return Ok(answer::lines(&call.turn, generation, wording));
    }
    let text = generation.run_to_end().await.concat();
    Ok(answer::json(&call.turn, &wording.last(&generation, &text)))
}

/// Where the words of an answer stand.
#[derive(Clone, Copy, Debug)]
enum Field {
    Message,
    Response,
}

struct LineWording {
    model: String,
    field: Field,
}

impl LineWording {
    fn line(&self, text: &str, done: bool) -> Value {
        let mut line = json!({"model": self.model, "created_at": MADE_AT, "done": done});
        match self.field {
            Field::Message => {
                set(&mut line, "message", json!({"role": "assistant", "content": text}));
            }
            Field::Response => set(&mut line, "response", json!(text)),
        }
        line
    }

    fn last(&self, generation: &Generation, text: &str) -> Value {
        let mut line = self.line(text, true);
        let usage = generation.usage;
        set(&mut line, "done_reason", json!(generation.finishes.first().map_or("stop", reason)));
        set(&mut line, "prompt_eval_count", json!(usage.prompt));
        set(&mut line, "eval_count", json!(usage.generated));
        line
    }
}

impl Wording for LineWording {
    fn opening(&mut self, _: &Generation) -> Vec<Event> {
        Vec::new()
    }

    fn pieces(&mut self, _: &Generation, pieces: &[Piece]) -> Vec<Event> {
        pieces.iter().map(|piece| Event::unnamed(&self.line(&piece.text, false))).collect()
    }

    fn closing(&mut self, generation: &Generation) -> Vec<Event> {
        vec![Event::unnamed(&self.last(generation, ""))]
    }
}

async fn embed_texts(call: Call) -> Response {
    let asked = async {
        call.admit()?;
        let request: EmbedRequest = call.json()?;
        let model = call.model(request.model.as_deref())?;
        let texts = request.input.texts();
        let tokens = call.read(&texts).await?;
        let vectors: Vec<_> = texts.iter().map(|text| embed(&model, text, DIMENSIONS)).collect();
        let body = json!({"model": model, "embeddings": vectors, "prompt_eval_count": tokens});
        Ok(answer::json(&call.turn, &body))
    };
    asked.await.unwrap_or_else(|refusal: Refusal| refusal.in_ollama_shape())
}

async fn tags(call: Call) -> Response {
    let name = call.engine.own_name();
    answer::json(&call.turn, &json!({"models": [{"name": name, "model": name}]}))
}

async fn version(call: Call) -> Response {
    answer::json(&call.turn, &json!({ "version": VERSION }))
}
