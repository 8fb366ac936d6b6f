//! The keys of a request that policy reads, and the reading of an object that has them at most once.

use std::fmt;

use serde::Deserialize;
use serde::de::value::{BorrowedBytesDeserializer, Error};
use serde::de::{Deserializer, IgnoredAny, IntoDeserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use strum::IntoEnumIterator as _;

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
    /// llama.cpp's name for it.
    NPredict,
    /// What Ollama has it among.
    Options,
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
    /// Whether the engine answers at once, and goes on.
    Background,
    /// Whatever else there is.
    #[serde(other)]
    Other,
}

impl Key {
    /// The key that policy reads and that a reader which knows no case takes `spelled` for, as Go's
    /// does: it would take its value too.
    fn in_another_case(spelled: &[u8]) -> Option<Self> {
        // Hardly any key has a capital, and so there is mostly nothing to compare.
        let plain = spelled.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'_' | b'0'..=b'9'));
        if plain && !matches!(spelled, b"cachekey" | b"documentcontext") {
            return None;
        }
        let folded = || std::str::from_utf8(spelled).unwrap_or_default().chars().map(fold);
        Self::iter().find(|key| {
            let name: &'static str = key.into();
            *key != Self::Other && folded().eq(name.chars().map(fold))
        })
    }
}

/// Letters that some reader takes for the same. Those behind ASCII have one of it as their other case.
fn fold(letter: char) -> char {
    match letter {
        '\u{212a}' => 'k',
        'ſ' => 's',
        'ı' | 'İ' => 'i',
        letter => letter.to_ascii_lowercase(),
    }
}

/// A key that policy reads, spelled in a way that only some readers take for it.
pub(super) struct Misspelled {
    pub(super) key: Key,
    pub(super) spelled: String,
}

/// An object's fields that policy reads, in the order they stand in.
pub(super) struct Object<'a> {
    pub(super) fields: Vec<(Key, &'a str)>,
    /// The first key that came a second time.
    pub(super) duplicate: Option<Key>,
    /// The first key that is one of these to some readers only.
    pub(super) misspelled: Option<Misspelled>,
    pub(super) empty: bool,
}

impl<'a> Object<'a> {
    fn new() -> Self {
        Self { fields: Vec::with_capacity(8), duplicate: None, misspelled: None, empty: true }
    }

    /// Reads `text` quickly; `None` where it has to be deserialized, because it is unusual or wrong.
    pub(super) fn skimmed(text: &'a str) -> Option<Self> {
        let mut object = Self::new();
        let mut skimmer = Skimmer::new(text.as_bytes());
        skimmer.object(|key, value| {
            object.empty = false;
            match Key::deserialize(BorrowedBytesDeserializer::<Error>::new(key)).ok()? {
                Key::Other => object.pass(key),
                key => object.add(key, text.get(value)?),
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

    /// Passes a key that is none of those that policy reads, to us.
    fn pass(&mut self, spelled: &[u8]) {
        if self.misspelled.is_none()
            && let Some(key) = Key::in_another_case(spelled)
        {
            let spelled = String::from_utf8_lossy(spelled).into_owned();
            self.misspelled = Some(Misspelled { key, spelled });
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
        let mut object = Object::new();
        while let Some(spelled) = map.next_key::<String>()? {
            object.empty = false;
            let key = Key::deserialize(spelled.as_str().into_deserializer())?;
            if key == Key::Other {
                object.pass(spelled.as_bytes());
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            object.add(key, map.next_value::<&'de RawValue>()?.get());
        }
        Ok(object)
    }
}
