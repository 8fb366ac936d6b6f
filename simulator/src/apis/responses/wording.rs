//! A response as an object and as events.

use std::sync::Arc;

use serde_json::{Value, json};

use super::store::Stored;
use crate::apis::answer::{Event, Wording, set};
use crate::engine::Engine;
use crate::generation::{Content, Finish, Generation, Piece, Usage};

/// What stays the same over the life of a response.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) model: String,
    pub(super) background: bool,
    pub(super) store: bool,
    pub(super) instructions: Option<String>,
    pub(super) previous: Option<String>,
    pub(super) limit: Option<usize>,
    pub(super) metadata: Value,
}

impl Frame {
    /// The response with this status and output.
    pub(super) fn object(&self, status: &str, output: &Value, usage: Option<Usage>) -> Value {
        let incomplete = (status == "incomplete").then(|| json!({"reason": "max_output_tokens"}));
        json!({
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "background": self.background,
            "error": null,
            "incomplete_details": incomplete,
            "instructions": self.instructions,
            "max_output_tokens": self.limit,
            "metadata": self.metadata,
            "model": self.model,
            "output": output,
            "parallel_tool_calls": true,
            "previous_response_id": self.previous,
            "store": self.store,
            "temperature": 1.0,
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": usage.map(usage_object),
        })
    }

    /// The response once its generation is over.
    pub(super) fn over(&self, generation: &Generation, text: &str) -> Value {
        let status = status(generation);
        let item = self.item(generation, text, status);
        self.object(status, &json!([item]), Some(generation.usage))
    }

    /// The only output there is: a message or a function call.
    pub(super) fn item(&self, generation: &Generation, text: &str, status: &str) -> Value {
        match &generation.ask.content {
            Content::ToolCall { name, .. } => json!({
                "type": "function_call",
                "id": self.item_id(generation),
                "call_id": self.id.replace("resp_", "call_"),
                "name": name,
                "arguments": text,
                "status": status,
            }),
            Content::Words | Content::Json(_) => {
                let content = if text.is_empty() { json!([]) } else { json!([part(text)]) };
                json!({
                    "type": "message",
                    "id": self.item_id(generation),
                    "role": "assistant",
                    "status": status,
                    "content": content,
                })
            }
        }
    }

    fn item_id(&self, generation: &Generation) -> String {
        match &generation.ask.content {
            Content::ToolCall { .. } => self.id.replace("resp_", "fc_"),
            Content::Words | Content::Json(_) => self.id.replace("resp_", "msg_"),
        }
    }

    /// What is kept of a response that is over.
    pub(super) fn stored(&self, generation: &Generation, text: &str) -> Stored {
        Stored {
            object: self.over(generation, text),
            conversation: format!("{}assistant: {text}\n", generation.ask.prompt),
            work: None,
        }
    }
}

fn status(generation: &Generation) -> &'static str {
    if generation.finishes.contains(&Finish::Length) { "incomplete" } else { "completed" }
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": []})
}

fn usage_object(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.held},
        "output_tokens": usage.generated,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt + usage.generated,
    })
}

/// A response as events, numbered in sequence.
pub(super) struct ResponseWording {
    engine: Arc<Engine>,
    frame: Frame,
    text: String,
    sequence: u64,
}

impl ResponseWording {
    pub(super) fn new(engine: &Arc<Engine>, frame: Frame) -> Self {
        Self { engine: Arc::clone(engine), frame, text: String::new(), sequence: 0 }
    }

    fn event(&mut self, kind: &'static str, mut content: Value) -> Event {
        set(&mut content, "type", json!(kind));
        set(&mut content, "sequence_number", json!(self.sequence));
        self.sequence += 1;
        Event::named(kind, &content)
    }

    /// An event about the one output item.
    fn item_event(
        &mut self,
        generation: &Generation,
        kind: &'static str,
        mut content: Value,
    ) -> Event {
        set(&mut content, "item_id", json!(self.frame.item_id(generation)));
        set(&mut content, "output_index", json!(0));
        if !matches!(generation.ask.content, Content::ToolCall { .. }) {
            set(&mut content, "content_index", json!(0));
        }
        self.event(kind, content)
    }
}

impl Wording for ResponseWording {
    fn opening(&mut self, generation: &Generation) -> Vec<Event> {
        let begun = self.frame.object("in_progress", &json!([]), None);
        let item = self.frame.item(generation, "", "in_progress");
        let mut events = vec![
            self.event("response.created", json!({ "response": begun })),
            self.event("response.in_progress", json!({ "response": begun })),
            self.event("response.output_item.added", json!({"output_index": 0, "item": item})),
        ];
        if !matches!(generation.ask.content, Content::ToolCall { .. }) {
            let content = json!({"part": part("")});
            events.push(self.item_event(generation, "response.content_part.added", content));
        }
        events
    }

    fn pieces(&mut self, generation: &Generation, pieces: &[Piece]) -> Vec<Event> {
        let tool_call = matches!(generation.ask.content, Content::ToolCall { .. });
        let mut events = Vec::new();
        for piece in pieces {
            self.text.push_str(&piece.text);
            let (kind, content) = if tool_call {
                ("response.function_call_arguments.delta", json!({"delta": piece.text}))
            } else {
                ("response.output_text.delta", json!({"delta": piece.text, "logprobs": []}))
            };
            events.push(self.item_event(generation, kind, content));
        }
        events
    }

    fn closing(&mut self, generation: &Generation) -> Vec<Event> {
        let text = self.text.clone();
        let status = status(generation);
        let item = self.frame.item(generation, &text, status);
        let mut events = Vec::new();
        if let Content::ToolCall { name, .. } = &generation.ask.content {
            let content = json!({"name": name, "arguments": text});
            let kind = "response.function_call_arguments.done";
            events.push(self.item_event(generation, kind, content));
        } else {
            let content = json!({"text": text, "logprobs": []});
            events.push(self.item_event(generation, "response.output_text.done", content));
            let content = json!({"part": part(&text)});
            events.push(self.item_event(generation, "response.content_part.done", content));
        }
        let done = json!({"output_index": 0, "item": item});
        events.push(self.event("response.output_item.done", done));
        let kind =
            if status == "incomplete" { "response.incomplete" } else { "response.completed" };
        let over = self.frame.over(generation, &text);
        events.push(self.event(kind, json!({ "response": over })));
        if self.frame.store {
            let stored = self.frame.stored(generation, &text);
            self.engine.responses.keep(&self.frame.id, stored);
        }
        events
    }
}
