//! Conversations as text: what the model reads, and what the last turn of the user is about.

use serde_json::Value;

use crate::random::stable_hash;

/// A conversation as one text, and its topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub(crate) text: String,
    pub(crate) topic: String,
}

impl Prompt {
    /// Adds a turn of `role`; the last turn of the user is the topic.
    pub(crate) fn add(&mut self, role: &str, content: &Value) {
        let words = content_text(content);
        self.text.push_str(role);
        self.text.push_str(": ");
        self.text.push_str(&words);
        self.text.push('\n');
        if role == "user" {
            self.topic = words;
        }
    }

    /// The conversation in `messages`.
    pub(crate) fn from_messages(messages: &[Value]) -> Self {
        let mut prompt = Self::default();
        for message in messages {
            let role = message.get("role").and_then(Value::as_str).unwrap_or("user");
            prompt.add(role, message.get("content").unwrap_or(&Value::Null));
        }
        prompt
    }
}

/// The text of a content that is a string or a list of parts; pictures and sounds count by their hash.
pub(crate) fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(part_text).collect::<Vec<_>>().join(" "),
        _ => String::new(),
    }
}

fn part_text(part: &Value) -> String {
    match part.get("text").or(part.get("content")).and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None => match part.as_str() {
            Some(text) => text.to_owned(),
            None => format!("[{:x}]", stable_hash(part.to_string().as_bytes(), 0)),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_user_turn_is_the_topic_in_either_form() {
        let prompt = Prompt::from_messages(&[
            json!({"role": "system", "content": "Be kind."}),
            json!({"role": "user", "content": [{"type": "text", "text": "Hello"}, {"type": "text", "text": "there"}]}),
        ]);
        assert_eq!(prompt.text, "system: Be kind.\nuser: Hello there\n");
        assert_eq!(prompt.topic, "Hello there");
    }

    #[test]
    fn two_pictures_are_two_prompts() {
        let picture = |url: &str| json!([{"type": "image_url", "image_url": {"url": url}}]);
        assert_ne!(content_text(&picture("data:a")), content_text(&picture("data:b")));
    }
}
