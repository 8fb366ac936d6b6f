//! `POST /v1/completions`, whole and as a stream, for one prompt or several.

use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{self, Event, Wording, set};
use super::call::{Call, now};
use super::chat::{Stops, StreamOptions, choices, limit, reason, usage};
use super::refusal::Refusal;
use crate::generation::{Ask, Content, Generation, Piece};

/// Tokens of an answer that is not limited, as in vLLM.
const DEFAULT_LIMIT: usize = 16;

#[derive(Debug, Deserialize)]
struct CompletionRequest {
    model: Option<String>,
    prompt: Prompts,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<usize>,
    n: Option<usize>,
    stop: Option<Stops>,
    seed: Option<i64>,
    ignore_eos: Option<bool>,
}

/// A prompt, or several, as text or as numbers of tokens.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Prompts {
    Text(String),
    Texts(Vec<String>),
    Tokens(Vec<u32>),
    TokenLists(Vec<Vec<u32>>),
}

impl Prompts {
    pub(super) fn texts(self) -> Vec<String> {
        let words = |tokens: Vec<u32>| {
            tokens.iter().map(|token| format!("t{token}")).collect::<Vec<_>>().join(" ")
        };
        match self {
            Self::Text(text) => vec![text],
            Self::Texts(texts) => texts,
            Self::Tokens(tokens) => vec![words(tokens)],
            Self::TokenLists(lists) => lists.into_iter().map(words).collect(),
        }
    }
}

/// Goes on with a prompt.
pub(crate) async fn create(call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    let request: CompletionRequest = call.json()?;
    let model = call.model(request.model.as_deref())?;
    let streams = request.stream == Some(true);
    let usage_asked = request.stream_options.is_some_and(|o| o.include_usage == Some(true));
    let texts = request.prompt.texts();
    let each = choices(request.n)?;
    let topics: Vec<String> =
        texts.iter().flat_map(|text| std::iter::repeat_n(text.clone(), each)).collect();
    if topics.is_empty() {
        return Err(Refusal::bad_request("prompt: at least one prompt is needed"));
    }
    let mut generation = call.generate(Ask {
        model: model.clone(),
        prompt: texts.join("\n"),
        topics,
        limit: Some(limit(request.max_tokens)?.unwrap_or(DEFAULT_LIMIT)),
        stop: Stops::list(request.stop),
        ignores_end: request.ignore_eos == Some(true),
        seed: request.seed.unwrap_or(0).cast_unsigned(),
        content: Content::Words,
    })?;
    let wording =
        CompletionWording { id: call.id("cmpl-"), created: now(), model, usage: usage_asked };
    if streams {
        return Ok(answer::events(&call.turn, generation, wording));
    }
    let texts = generation.run_to_end().await;
    let choices: Vec<Value> = (texts.iter().zip(&generation.finishes).enumerate())
        .map(|(index, (text, finish))| choice(index, text, Some(reason(finish))))
        .collect();
    let mut whole = wording.object(&json!(choices));
    set(&mut whole, "usage", usage(generation.usage));
    Ok(answer::json(&call.turn, &whole))
}

fn choice(index: usize, text: &str, finish: Option<&str>) -> Value {
    json!({"index": index, "text": text, "logprobs": null, "finish_reason": finish})
}

struct CompletionWording {
    id: String,
    created: u64,
    model: String,
    usage: bool,
}

impl CompletionWording {
    fn object(&self, choices: &Value) -> Value {
        json!({
            "id": self.id,
            "object": "text_completion",
            "created": self.created,
            "model": self.model,
            "choices": choices,
        })
    }

    fn chunk(&self, choices: &Value) -> Event {
        let mut chunk = self.object(choices);
        if self.usage {
            set(&mut chunk, "usage", Value::Null);
        }
        Event::unnamed(&chunk)
    }
}

impl Wording for CompletionWording {
    fn opening(&mut self, _: &Generation) -> Vec<Event> {
        Vec::new()
    }

    fn pieces(&mut self, _: &Generation, pieces: &[Piece]) -> Vec<Event> {
        let chunk = |piece: &Piece| self.chunk(&json!([choice(piece.choice, &piece.text, None)]));
        pieces.iter().map(chunk).collect()
    }

    fn closing(&mut self, generation: &Generation) -> Vec<Event> {
        let finishes = generation.finishes.iter().enumerate();
        let mut events: Vec<Event> = finishes
            .map(|(index, finish)| self.chunk(&json!([choice(index, "", Some(reason(finish)))])))
            .collect();
        if self.usage {
            let mut last = self.object(&json!([]));
            set(&mut last, "usage", usage(generation.usage));
            events.push(Event::unnamed(&last));
        }
        events.push(Event::done());
        events
    }
}
