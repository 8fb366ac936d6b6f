//! The keys of a request that policy reads, and the reading of an object that has them at most once.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A top-level key that some decision depends on. Any other key may be repeated, as its meaning is
/// between the client and the engine. A new decision that reads a key names it here.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, strum::IntoStaticStr, strum::EnumIter,
)]
#[serde(field_identifier, rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Key {
    /// Which model.
    Model,
    /// Whether the answer is a stream of events.
    Stream,
    /// Whether the stream ends with a usage event.
    StreamOptions,
    /// The most tokens to make (chat, completions, Anthropic).
    MaxTokens,
    /// The same in newer chat requests.
    MaxCompletionTokens,
    /// The same in responses.
    MaxOutputTokens,
    /// How many answers.
    N,
    /// How many candidates an engine makes for each answer.
    BestOf,
    /// The end user.
    User,
    /// The session, for affinity.
    SessionId,
    /// An explicit prefix key.
    CacheKey,
    /// Its other spelling.
    #[serde(rename = "cacheKey")]
    #[strum(serialize = "cacheKey")]
    CacheKeyCamel,
    /// An explicit prefix.
    Prefix,
    /// The conversation.
    Messages,
    /// Anthropic's system prompt.
    System,
    /// The instructions of responses.
    Instructions,
    /// The text of completions and images.
    Prompt,
    /// The text of embeddings and responses.
    Input,
    /// What a retrieval put beside the conversation.
    Documents,
    /// One such document.
    DocumentContext,
    /// Its other spelling.
    #[serde(rename = "documentContext")]
    #[strum(serialize = "documentContext")]
    DocumentContextCamel,
    /// Its shortest spelling.
    Context,
    /// The response that this one goes on from.
    PreviousResponseId,
    /// Whatever else there is.
    #[serde(other)]
    Other,
}

/// An object's fields that policy reads, in the order they stand in.
pub(super) struct Object<'a> {
    pub(super) fields: Vec<(Key, &'a RawValue)>,
    /// The first key that came a second time.
    pub(super) duplicate: Option<Key>,
    pub(super) empty: bool,
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut object = Object { fields: Vec::with_capacity(8), duplicate: None, empty: true };
        while let Some(key) = map.next_key::<Key>()? {
            object.empty = false;
            if key == Key::Other {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let raw = map.next_value::<&'de RawValue>()?;
            if object.fields.iter().any(|(found, _)| *found == key) {
                object.duplicate = object.duplicate.or(Some(key));
            } else {
                object.fields.push((key, raw));
            }
        }
        Ok(object)
    }
}
