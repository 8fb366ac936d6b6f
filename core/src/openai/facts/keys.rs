//! The keys of a request that policy reads, and the reading of an object that has them at most once.

use std::fmt;

use serde::Deserialize;
use serde::de::value::{BorrowedBytesDeserializer, Error};
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::openai::skim::Skimmer;

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
    pub(super) fields: Vec<(Key, &'a str)>,
    /// The first key that came a second time.
    pub(super) duplicate: Option<Key>,
    pub(super) empty: bool,
}

impl<'a> Object<'a> {
    /// Reads `text` quickly; `None` where it has to be deserialized, because it is unusual or wrong.
    pub(super) fn skimmed(text: &'a str) -> Option<Self> {
        let mut object = Self { fields: Vec::with_capacity(8), duplicate: None, empty: true };
        let mut skimmer = Skimmer::new(text.as_bytes());
        skimmer.object(|key, value| {
            object.empty = false;
            let key = Key::deserialize(BorrowedBytesDeserializer::<Error>::new(key)).ok()?;
            if key != Key::Other {
                object.add(key, text.get(value)?);
            }
            Some(())
        })?;
        skimmer.at_end().then_some(object)
    }

    fn add(&mut self, key: Key, value: &'a str) {
        if self.fields.iter().any(|(found, _)| *found == key) {
            self.duplicate = self.duplicate.or(Some(key));
        } else {
            self.fields.push((key, value));
        }
    }
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
            object.add(key, map.next_value::<&'de RawValue>()?.get());
        }
        Ok(object)
    }
}
