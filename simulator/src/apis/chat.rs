//! `POST /v1/chat/completions`, whole and as a stream.

use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{self, Event, Wording, set};
use super::call::{Call, now};
use super::prompt::Prompt;
use super::refusal::Refusal;
use super::tools::{self, Tool};
use crate::generation::{Ask, Content, Finish, Generation, Piece, Usage};

#[derive(Debug, Deserialize)]
struct ChatRequest {
    model: Option<String>,
    messages: Vec<Value>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<usize>,
    max_completion_tokens: Option<usize>,
    n: Option<usize>,
    stop: Option<Stops>,
    seed: Option<i64>,
    ignore_eos: Option<bool>,
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
    response_format: Option<Value>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct StreamOptions {
    pub(super) include_usage: Option<bool>,
}

/// One stop sequence or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Stops {
    One(String),
    Several(Vec<String>),
}

impl Stops {
    pub(super) fn list(stops: Option<Self>) -> Vec<String> {
        match stops {
            None => Vec::new(),
            Some(Self::One(stop)) => vec![stop],
            Some(Self::Several(stops)) => stops,
        }
    }
}

/// Answers a conversation.
pub(crate) async fn create(call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    let request: ChatRequest = call.json()?;
    if request.messages.is_empty() {
        return Err(Refusal::bad_request("messages: at least one message is needed"));
    }
    let model = call.model(request.model.as_deref())?;
    let streams = request.stream == Some(true);
    let usage_asked = request.stream_options.is_some_and(|o| o.include_usage == Some(true));
    let mut generation = call.generate(request.into_ask(&model)?)?;
    let wording =
        ChatWording { id: call.id("chatcmpl-"), created: now(), model, usage: usage_asked };
    if streams {
        return Ok(answer::events(&call.turn, generation, wording));
    }
    let texts = generation.run_to_end().await;
    Ok(answer::json(&call.turn, &wording.whole(&generation, &texts)))
}

impl ChatRequest {
    fn into_ask(self, model: &str) -> Result<Ask, Refusal> {
        let prompt = Prompt::from_messages(&self.messages);
        let tools = Tool::list(self.tools.as_ref());
        let mut content = tools::content(&tools, self.tool_choice.as_ref(), &prompt.topic);
        if let (Content::Words, Some(format)) = (&content, &self.response_format) {
            content = content_by_format(format, model, &prompt.topic);
        }
        Ok(Ask {
            model: model.to_owned(),
            prompt: prompt.text,
            topics: vec![prompt.topic; choices(self.n)?],
            limit: limit(self.max_completion_tokens.or(self.max_tokens))?,
            stop: Stops::list(self.stop),
            ignores_end: self.ignore_eos == Some(true),
            seed: self.seed.unwrap_or(0).cast_unsigned(),
            content,
        })
    }
}

fn content_by_format(format: &Value, model: &str, topic: &str) -> Content {
    match format.get("type").and_then(Value::as_str) {
        Some("json_object") => Content::Json(json!({"model": model, "about": topic})),
        Some("json_schema") => {
            let schema = format.pointer("/json_schema/schema").unwrap_or(&Value::Null);
            Content::Json(tools::example(schema, topic, 0))
        }
        _ => Content::Words,
    }
}

/// A limit of tokens; vLLM refuses 0.
pub(super) fn limit(asked: Option<usize>) -> Result<Option<usize>, Refusal> {
    match asked {
        Some(0) => Err(Refusal::bad_request("max_tokens must be at least 1, got 0.")),
        asked => Ok(asked),
    }
}

/// How many answers are wanted at once.
pub(super) fn choices(asked: Option<usize>) -> Result<usize, Refusal> {
    match asked.unwrap_or(1) {
        n @ 1..=128 => Ok(n),
        n => Err(Refusal::bad_request(&format!("n must be from 1 to 128, got {n}."))),
    }
}

pub(super) fn reason(finish: &Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::StopSequence(_) => "stop",
        Finish::Length => "length",
        Finish::ToolCall => "tool_calls",
    }
}

pub(super) fn usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.generated,
        "total_tokens": usage.prompt + usage.generated,
        "prompt_tokens_details": {"cached_tokens": usage.held},
    })
}

struct ChatWording {
    id: String,
    created: u64,
    model: String,
    /// The client asked for a last chunk with the usage.
    usage: bool,
}

impl ChatWording {
    fn tool_call(&self, choice: usize, name: &str, arguments: &str) -> Value {
        let function = json!({"name": name, "arguments": arguments});
        json!({"id": self.tool_call_id(choice), "type": "function", "function": function})
    }

    fn tool_call_id(&self, choice: usize) -> String {
        format!("call_{}_{choice}", self.id.trim_start_matches("chatcmpl-"))
    }

    fn whole(&self, generation: &Generation, texts: &[String]) -> Value {
        let ended = texts.iter().zip(&generation.finishes).enumerate();
        let choices: Vec<Value> = ended
            .map(|(index, (text, finish))| {
                let message = match &generation.ask.content {
                    Content::ToolCall { name, .. } => {
                        let calls = [self.tool_call(index, name, text)];
                        json!({"role": "assistant", "content": null, "tool_calls": calls})
                    }
                    Content::Words | Content::Json(_) => {
                        json!({"role": "assistant", "content": text})
                    }
                };
                json!({"index": index, "message": message, "logprobs": null,
                       "finish_reason": reason(finish)})
            })
            .collect();
        json!({
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": choices,
            "usage": usage(generation.usage),
        })
    }

    fn chunk(&self, choices: &Value, usage: &Value) -> Event {
        let mut chunk = json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": choices,
        });
        if self.usage
            && let Value::Object(fields) = &mut chunk
        {
            fields.insert("usage".to_owned(), usage.clone());
        }
        Event::unnamed(&chunk)
    }

    fn delta(&self, index: usize, delta: &Value, finish: Option<&str>) -> Event {
        let choice = json!({"index": index, "delta": delta, "logprobs": null,
                            "finish_reason": finish});
        self.chunk(&json!([choice]), &Value::Null)
    }
}

impl Wording for ChatWording {
    fn opening(&mut self, generation: &Generation) -> Vec<Event> {
        let delta = |index| match &generation.ask.content {
            Content::ToolCall { name, .. } => {
                let mut call = self.tool_call(index, name, "");
                set(&mut call, "index", json!(0));
                json!({"role": "assistant", "content": null, "tool_calls": [call]})
            }
            Content::Words | Content::Json(_) => json!({"role": "assistant", "content": ""}),
        };
        (0..generation.finishes.len()).map(|index| self.delta(index, &delta(index), None)).collect()
    }

    fn pieces(&mut self, generation: &Generation, pieces: &[Piece]) -> Vec<Event> {
        let delta = |text: &str| match &generation.ask.content {
            Content::ToolCall { .. } => {
                json!({"tool_calls": [{"index": 0, "function": {"arguments": text}}]})
            }
            Content::Words | Content::Json(_) => json!({"content": text}),
        };
        pieces.iter().map(|piece| self.delta(piece.choice, &delta(&piece.text), None)).collect()
    }

    fn closing(&mut self, generation: &Generation) -> Vec<Event> {
        let finishes = generation.finishes.iter().enumerate();
        let mut events: Vec<Event> = finishes
            .map(|(index, finish)| self.delta(index, &json!({}), Some(reason(finish))))
            .collect();
        if self.usage {
            events.push(self.chunk(&json!([]), &usage(generation.usage)));
        }
        events.push(Event::done());
        events
    }
}
