//! How a conversation begins: what the system says, and the first thing that the user says. Reading
//! stops there, so that a long conversation costs no more than a short one.

use std::fmt;
use std::ops::ControlFlow;

use serde::Deserialize;
use serde::de::{Deserializer as _, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::excerpt::{Excerpt, string};
use super::{Facts, Key};

/// How a conversation begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// What the system says before the user speaks, in one text.
    pub system: String,
    /// The first message of the user.
    pub user: String,
}

impl Opening {
    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.system.is_empty() && self.user.is_empty()
    }
}

impl Facts {
    /// How the conversation in `body` begins, with at most `limit` bytes of each text: of chats, of
    /// Anthropic's messages and of responses. Empty where there is none.
    pub fn opening(&self, body: &[u8], limit: usize) -> Opening {
        let (mut system, mut user) = (Excerpt::plain(limit), Excerpt::plain(limit));
        self.system_fields(body).for_each(|text| system.take(text));
        match self.conversation(body) {
            Some(text) if text.starts_with('"') => user.take(text),
            Some(text) => each_message(text, |role, content| match role {
                "system" | "developer" => {
                    system.take(content);
                    ControlFlow::Continue(())
                }
                "user" => {
                    user.take(content);
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }),
            None => {}
        }
        Opening { system: system.into_text(), user: user.into_text() }
    }

    /// The first `count` texts of the system before anybody else speaks, each normalised and cut to
    /// `limit` bytes; empty ones do not count.
    pub fn system_prompts(&self, body: &[u8], count: usize, limit: usize) -> Vec<String> {
        let mut prompts = Vec::new();
        let mut take = |text: &str| {
            let mut excerpt = Excerpt::normal(limit);
            excerpt.take(text);
            let text = excerpt.into_text();
            if prompts.len() < count && !text.is_empty() {
                prompts.push(text);
            }
        };
        self.system_fields(body).for_each(&mut take);
        if let Some(text) = self.conversation(body) {
            each_message(text, |role, content| {
                if !matches!(role, "system" | "developer") {
                    return ControlFlow::Break(());
                }
                take(content);
                ControlFlow::Continue(())
            });
        }
        prompts
    }

    /// What the system says outside of the messages.
    fn system_fields<'a>(&self, body: &'a [u8]) -> impl Iterator<Item = &'a str> {
        [Key::System, Key::Instructions].into_iter().filter_map(move |key| self.text(key, body))
    }

    fn conversation<'a>(&self, body: &'a [u8]) -> Option<&'a str> {
        self.text(Key::Messages, body).or_else(|| self.text(Key::Input, body))
    }
}

/// Shows the role, in lower case, and the content of each message in `json` to `look`, until it has
/// seen enough. What is no message ends it: there is nothing to go by after that.
fn each_message(json: &str, look: impl FnMut(&str, &str) -> ControlFlow<()>) {
    let mut reader = serde_json::Deserializer::from_str(json);
    // Its end is an error, as that is how a visitor stops early.
    let _ = reader.deserialize_seq(Messages(look));
}

struct Messages<F>(F);

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

impl<'de, F: FnMut(&str, &str) -> ControlFlow<()>> Visitor<'de> for Messages<F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut messages: A) -> Result<(), A::Error> {
        while let Some(message) = messages.next_element::<Message<'de>>()? {
            let (Some(role), Some(content)) = (message.role, message.content) else { continue };
            let role = string(role.get()).unwrap_or_default().to_ascii_lowercase();
            if (self.0)(&role, content.get()).is_break() {
                return Err(A::Error::custom("enough"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opening(body: &str) -> (String, String) {
        let facts = Facts::read(body.as_bytes()).expect("JSON");
        let opening = facts.opening(body.as_bytes(), 100);
        (opening.system, opening.user)
    }

    #[test]
    fn every_api_begins_a_conversation_in_its_own_way() {
        for body in [
            r#"{"messages":[{"role":"system","content":"S"},{"role":"user","content":"U"},{"role":"assistant","content":"A"},{"role":"user","content":"V"}]}"#,
            r#"{"messages":[{"content":[{"type":"text","text":"S"}],"role":"Developer"},{"role":"user","content":[{"type":"text","text":"U"}]}]}"#,
            r#"{"system":"S","messages":[{"role":"user","content":"U"}]}"#,
            r#"{"system":[{"type":"text","text":"S"}],"messages":[{"role":"user","content":"U"}]}"#,
            r#"{"instructions":"S","input":"U"}"#,
            r#"{"instructions":"S","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"U"}]}]}"#,
        ] {
            assert_eq!(opening(body), ("S".to_owned(), "U".to_owned()), "{body}");
        }
    }

    #[test]
    fn what_is_no_conversation_begins_with_nothing() {
        for body in [
            r#"{"prompt":"P"}"#,
            r#"{"messages":"x"}"#,
            r#"{"messages":[1]}"#,
            r#"{"messages":[{"role":7,"content":"U"}]}"#,
            r#"{"messages":[{"role":"user","content":null}]}"#,
            r#"{"input":[1,2,3]}"#,
        ] {
            let said = opening(body);
            let empty = said.0.is_empty() && (said.1.is_empty() || body.contains("\"x\""));
            assert!(empty, "{body}: {said:?}");
        }
    }

    #[test]
    fn only_the_system_prompts_that_come_first_count() {
        let body = r#"{"messages":[{"role":"SYSTEM","content":" One\n two "},{"role":"system","content":""},{"role":"system","content":"Three"},{"role":"user","content":"U"},{"role":"system","content":"Four"}]}"#;
        let facts = Facts::read(body.as_bytes()).expect("JSON");
        assert_eq!(facts.system_prompts(body.as_bytes(), 3, 5), ["one t", "three"]);
        assert_eq!(facts.system_prompts(body.as_bytes(), 1, 100), ["one two"]);
    }
}
