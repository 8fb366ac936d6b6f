//! What was said so far, and what comes of the next event of the client.

use serde_json::{Value, json};

use super::wrong;
use crate::apis::answer::set;
use crate::apis::call::Call;
use crate::apis::prompt::Prompt;
use crate::generation::{Ask, Content, Generation};
use crate::random::stable_hash;

/// Something to be done about an event.
pub(super) enum Effect {
    Tell(Value),
    /// An answer is to be written.
    Begin(Box<Generation>),
    /// The answer that is being written is to end.
    Cancel,
}

/// One conversation.
pub(super) struct Conversation {
    call: Call,
    model: String,
    session: Value,
    prompt: Prompt,
    /// Sound that was sent and not yet taken for something said.
    heard: Vec<u8>,
    last_item: Option<String>,
}

impl Conversation {
    pub(super) fn new(call: Call, model: String) -> Self {
        let session = json!({
            "type": "realtime",
            "object": "realtime.session",
            "id": call.id("sess_"),
            "model": model,
            "output_modalities": ["text"],
            "instructions": "",
            "tools": [],
            "max_output_tokens": "inf",
        });
        let (prompt, heard) = (Prompt::default(), Vec::new());
        Self { call, model, session, prompt, heard, last_item: None }
    }

    pub(super) fn id(&self, prefix: &str) -> String {
        self.call.id(prefix)
    }

    fn event(&self, kind: &str, mut event: Value) -> Value {
        set(&mut event, "type", json!(kind));
        set(&mut event, "event_id", json!(self.id("event_")));
        event
    }

    pub(super) fn opening(&self) -> Vec<Value> {
        vec![self.event("session.created", json!({"session": self.session}))]
    }

    /// What the model said itself.
    pub(super) fn answered(&mut self, text: &str) {
        self.prompt.add("assistant", &json!(text));
    }

    /// What comes of an event; `busy` while an answer is being written.
    pub(super) fn hear(&mut self, event: &Value, busy: bool) -> Vec<Effect> {
        match event.get("type").and_then(Value::as_str) {
            Some("session.update") => vec![self.update(event)],
            Some("conversation.item.create") => self.add(event),
            Some("input_audio_buffer.append") => {
                let sound = event.get("audio").and_then(Value::as_str).unwrap_or_default();
                self.heard.extend_from_slice(sound.as_bytes());
                Vec::new()
            }
            Some("input_audio_buffer.clear") => {
                self.heard.clear();
                vec![Effect::Tell(self.event("input_audio_buffer.cleared", json!({})))]
            }
            Some("input_audio_buffer.commit") => self.commit(event),
            Some("response.create") => vec![self.begin(event, busy)],
            Some("response.cancel") if busy => vec![Effect::Cancel],
            Some("response.cancel") => {
                let message = "Cancellation failed: no active response found";
                vec![Effect::Tell(wrong(event, "response_cancel_not_active", message))]
            }
            _ => vec![Effect::Tell(wrong(event, "invalid_value", "Unknown type of event"))],
        }
    }

    fn update(&mut self, event: &Value) -> Effect {
        let fields = event.get("session").and_then(Value::as_object);
        for (name, value) in fields.into_iter().flatten() {
            set(&mut self.session, name, value.clone());
        }
        // A session keeps its model.
        set(&mut self.session, "model", json!(self.model));
        Effect::Tell(self.event("session.updated", json!({"session": self.session})))
    }

    fn add(&mut self, event: &Value) -> Vec<Effect> {
        let Some(item) = event.get("item").filter(|item| item.is_object()) else {
            let told = wrong(event, "missing_required_parameter", "Missing parameter: 'item'");
            return vec![Effect::Tell(told)];
        };
        let role = item.get("role").and_then(Value::as_str).unwrap_or("user");
        self.prompt.add(role, item.get("content").unwrap_or(&Value::Null));
        self.added(item.clone())
    }

    fn added(&mut self, mut item: Value) -> Vec<Effect> {
        let before = self.last_item.take();
        let id = item.get("id").and_then(Value::as_str).map(str::to_owned);
        let id = id.unwrap_or_else(|| self.id("item_"));
        for (name, value) in
            [("id", id.as_str()), ("object", "realtime.item"), ("status", "completed")]
        {
            set(&mut item, name, json!(value));
        }
        self.last_item = Some(id);
        let told = json!({"previous_item_id": before, "item": item});
        ["conversation.item.added", "conversation.item.done"]
            .map(|kind| Effect::Tell(self.event(kind, told.clone())))
            .into()
    }

    /// Takes the sound that was sent for something that the user said.
    fn commit(&mut self, event: &Value) -> Vec<Effect> {
        if self.heard.is_empty() {
            let message = "Error committing input audio buffer: buffer too small";
            return vec![Effect::Tell(wrong(event, "input_audio_buffer_commit_empty", message))];
        }
        let heard = stable_hash(&std::mem::take(&mut self.heard), 0);
        let transcript = format!("sound {heard:x}");
        self.prompt.add("user", &json!(transcript));
        let id = self.id("item_");
        let told = json!({"item_id": id, "previous_item_id": self.last_item});
        let committed = Effect::Tell(self.event("input_audio_buffer.committed", told));
        let content = json!([{"type": "input_audio", "transcript": transcript}]);
        let item = json!({"id": id, "type": "message", "role": "user", "content": content});
        std::iter::once(committed).chain(self.added(item)).collect()
    }

    fn begin(&mut self, event: &Value, busy: bool) -> Effect {
        if busy {
            let message = "Conversation already has an active response";
            let code = "conversation_already_has_active_response";
            return Effect::Tell(wrong(event, code, message));
        }
        let asked = event.get("response").unwrap_or(&Value::Null);
        let setting = |name| asked.get(name).or_else(|| self.session.get(name));
        let limit = setting("max_output_tokens").and_then(Value::as_u64);
        let instructions = setting("instructions").and_then(Value::as_str).unwrap_or_default();
        let ask = Ask {
            model: self.model.clone(),
            prompt: format!("{instructions}\n{}", self.prompt.text),
            topics: vec![self.prompt.topic.clone()],
            limit: limit.and_then(|limit| usize::try_from(limit).ok()),
            stop: Vec::new(),
            ignores_end: false,
            seed: 0,
            content: Content::Words,
        };
        match self.call.generate(ask) {
            Ok(generation) => Effect::Begin(Box::new(generation)),
            Err(refusal) => Effect::Tell(wrong(event, "invalid_value", &refusal.to_string())),
        }
    }
}
