//! `POST /v1/messages` and `/v1/messages/count_tokens`, in Anthropic's shapes.

use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{self, Event, Wording, set};
use super::call::Call;
use super::prompt::Prompt;
use super::refusal::Refusal;
use super::tools::{self, Tool};
use crate::generation::{Ask, Content, Finish, Generation, Piece};
use crate::words;

#[derive(Debug, Deserialize)]
struct MessagesRequest {
    model: Option<String>,
    messages: Vec<Value>,
    system: Option<Value>,
    max_tokens: Option<usize>,
    stream: Option<bool>,
    stop_sequences: Option<Vec<String>>,
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
}

/// Answers a conversation.
pub(crate) async fn create(call: Call) -> Response {
    answer(&call).await.unwrap_or_else(|refusal| refusal.in_anthropic_shape())
}

/// Counts the tokens of a conversation.
pub(crate) async fn count_tokens(call: Call) -> Response {
    let counted = || {
        call.admit()?;
        let request: MessagesRequest = call.json()?;
        call.model(request.model.as_deref())?;
        let tokens = words::count(&request.prompt().text);
        Ok(answer::json(&call.turn, &json!({ "input_tokens": tokens })))
    };
    counted().unwrap_or_else(|refusal: Refusal| refusal.in_anthropic_shape())
}

async fn answer(call: &Call) -> Result<Response, Refusal> {
    call.admit()?;
    let request: MessagesRequest = call.json()?;
    let model = call.model(request.model.as_deref())?;
    let limit = match request.max_tokens {
        None => return Err(Refusal::bad_request("max_tokens: Field required")),
        Some(0) => return Err(Refusal::bad_request("max_tokens: must be greater than 0")),
        limit => limit,
    };
    let streams = request.stream == Some(true);
    let prompt = request.prompt();
    let tools = Tool::list(request.tools.as_ref());
    let content = tools::content(&tools, request.tool_choice.as_ref(), &prompt.topic);
    let mut generation = call.generate(Ask {
        model: model.clone(),
        prompt: prompt.text,
        topics: vec![prompt.topic],
        limit,
        stop: request.stop_sequences.unwrap_or_default(),
        ignores_end: false,
        seed: 0,
        content,
    })?;
    let wording = MessageWording { id: call.id("msg_"), model };
    if streams {
        return Ok(answer::events(&call.turn, generation, wording));
    }
    let text = generation.run_to_end().await.concat();
    Ok(answer::json(&call.turn, &wording.whole(&generation, &text)))
}

impl MessagesRequest {
    fn prompt(&self) -> Prompt {
        let mut prompt = Prompt::default();
        if let Some(system) = &self.system {
            prompt.add("system", system);
        }
        let turns = Prompt::from_messages(&self.messages);
        Prompt { text: prompt.text + &turns.text, topic: turns.topic }
    }
}

struct MessageWording {
    id: String,
    model: String,
}

impl MessageWording {
    fn whole(&self, generation: &Generation, text: &str) -> Value {
        let block = match &generation.ask.content {
            Content::ToolCall { name, arguments } => {
                json!({"type": "tool_use", "id": self.tool_use_id(), "name": name,
                       "input": arguments})
            }
            Content::Words | Content::Json(_) => json!({"type": "text", "text": text}),
        };
        let (reason, sequence) = stop_reason(generation);
        json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [block],
            "stop_reason": reason,
            "stop_sequence": sequence,
            "usage": usage(generation),
        })
    }

    fn tool_use_id(&self) -> String {
        self.id.replace("msg_", "toolu_")
    }
}

fn usage(generation: &Generation) -> Value {
    let usage = generation.usage;
    json!({
        "input_tokens": usage.prompt - usage.held.min(usage.prompt),
        "cache_read_input_tokens": usage.held,
        "cache_creation_input_tokens": 0,
        "output_tokens": usage.generated,
    })
}

fn stop_reason(generation: &Generation) -> (&'static str, Option<&str>) {
    match generation.finishes.first() {
        Some(Finish::StopSequence(sequence)) => ("stop_sequence", Some(sequence)),
        Some(Finish::Length) => ("max_tokens", None),
        Some(Finish::ToolCall) => ("tool_use", None),
        Some(Finish::Stop) | None => ("end_turn", None),
    }
}

/// An event whose name is also its `type`.
fn event(kind: &'static str, mut content: Value) -> Event {
    set(&mut content, "type", json!(kind));
    Event::named(kind, &content)
}

impl Wording for MessageWording {
    fn opening(&mut self, generation: &Generation) -> Vec<Event> {
        let mut message = self.whole(generation, "");
        set(&mut message, "content", json!([]));
        set(&mut message, "stop_reason", Value::Null);
        set(&mut message, "stop_sequence", Value::Null);
        let block = match &generation.ask.content {
            Content::ToolCall { name, .. } => {
                json!({"type": "tool_use", "id": self.tool_use_id(), "name": name, "input": {}})
            }
            Content::Words | Content::Json(_) => json!({"type": "text", "text": ""}),
        };
        vec![
            event("message_start", json!({ "message": message })),
            event("content_block_start", json!({"index": 0, "content_block": block})),
            event("ping", json!({})),
        ]
    }

    fn pieces(&mut self, generation: &Generation, pieces: &[Piece]) -> Vec<Event> {
        let delta = |text: &str| match &generation.ask.content {
            Content::ToolCall { .. } => json!({"type": "input_json_delta", "partial_json": text}),
            Content::Words | Content::Json(_) => json!({"type": "text_delta", "text": text}),
        };
        let spoken = pieces.iter().map(|piece| delta(&piece.text));
        spoken
            .map(|delta| event("content_block_delta", json!({"index": 0, "delta": delta})))
            .collect()
    }

    fn closing(&mut self, generation: &Generation) -> Vec<Event> {
        let (reason, sequence) = stop_reason(generation);
        let delta = json!({"stop_reason": reason, "stop_sequence": sequence});
        vec![
            event("content_block_stop", json!({"index": 0})),
            event("message_delta", json!({"delta": delta, "usage": usage(generation)})),
            event("message_stop", json!({})),
        ]
    }
}
