//! One answer as events: opened, told piece by piece, closed.

use serde_json::{Value, json};

use crate::generation::Usage;

/// An answer under way.
pub(super) struct Answer {
    response: String,
    item: String,
    text: String,
    events: u64,
}

impl Answer {
    pub(super) fn new(response: String, item: String) -> Self {
        Self { response, item, text: String::new(), events: 0 }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    fn event(&mut self, kind: &str, fields: &Value) -> Value {
        self.events += 1;
        let mut event = json!({
            "type": kind,
            "event_id": format!("event_{}_{}", self.response, self.events),
        });
        if let (Some(event), Some(fields)) = (event.as_object_mut(), fields.as_object()) {
            event.extend(fields.clone());
        }
        event
    }

    /// Where in the answer something belongs.
    fn at(&self, more: &Value) -> Value {
        let mut at = json!({"response_id": self.response, "item_id": self.item,
                            "output_index": 0, "content_index": 0});
        if let (Some(at), Some(more)) = (at.as_object_mut(), more.as_object()) {
            at.extend(more.clone());
        }
        at
    }

    fn part(&self) -> Value {
        json!({"type": "output_text", "text": self.text})
    }

    fn item(&self, status: &str, content: &[Value]) -> Value {
        json!({"id": self.item, "object": "realtime.item", "type": "message", "role": "assistant",
               "status": status, "content": content})
    }

    fn response(&self, status: &str, output: &[Value], usage: Option<Usage>) -> Value {
        let usage = usage.map(|usage| {
            json!({"input_tokens": usage.prompt, "output_tokens": usage.generated,
                   "total_tokens": usage.prompt + usage.generated,
                   "input_token_details": {"cached_tokens": usage.held},
                   "output_token_details": {"text_tokens": usage.generated}})
        });
        json!({"object": "realtime.response", "id": self.response, "status": status,
               "status_details": null, "output": output, "output_modalities": ["text"],
               "usage": usage})
    }

    /// Before the first piece.
    pub(super) fn opening(&mut self) -> Vec<Value> {
        let response = self.response("in_progress", &[], None);
        let item = self.item("in_progress", &[]);
        let added = json!({"response_id": self.response, "output_index": 0, "item": item});
        let part = self.at(&json!({"part": self.part()}));
        vec![
            self.event("response.created", &json!({ "response": response })),
            self.event("response.output_item.added", &added),
            self.event("conversation.item.added", &json!({"previous_item_id": null, "item": item})),
            self.event("response.content_part.added", &part),
        ]
    }

    pub(super) fn piece(&mut self, text: &str) -> Value {
        self.text.push_str(text);
        let delta = self.at(&json!({"delta": text}));
        self.event("response.output_text.delta", &delta)
    }

    /// After the last piece, or where it was cancelled.
    pub(super) fn closing(&mut self, status: &str, usage: Option<Usage>) -> Vec<Value> {
        let item_status = if status == "completed" { status } else { "incomplete" };
        let item = self.item(item_status, &[self.part()]);
        let response = self.response(status, std::slice::from_ref(&item), usage);
        let text = self.at(&json!({"text": self.text}));
        let part = self.at(&json!({"part": self.part()}));
        let done = json!({"response_id": self.response, "output_index": 0, "item": item});
        vec![
            self.event("response.output_text.done", &text),
            self.event("response.content_part.done", &part),
            self.event("response.output_item.done", &done),
            self.event("response.done", &json!({ "response": response })),
        ]
    }
}
