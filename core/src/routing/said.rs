//! What a request says that a key can be made of: some headers, and a JSON body if it has one.

use std::borrow::Cow;

use crate::openai::Facts;
use crate::openai::facts::{Excerpt, Key, Opening, string};

/// How long the texts may be that keys are made of: `PROXY_ROUTING_*_MAX_LENGTH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLengths {
    /// The longest explicit key; a longer one does not count.
    pub explicit: usize,
    /// Bytes that count of each system prompt.
    pub system: usize,
    /// Bytes that count of a document.
    pub document: usize,
}

impl Default for KeyLengths {
    fn default() -> Self {
        Self { explicit: 128, system: 512, document: 256 }
    }
}

/// What a request says.
#[derive(Clone, Copy)]
pub struct Said<'a> {
    /// Answers the name of a header, in lower case, with its value.
    pub header: &'a dyn Fn(&str) -> Option<&'a str>,
    /// The body and what was found in it, if it is JSON.
    pub json: Option<(&'a Facts, &'a [u8])>,
    /// How much of it counts.
    pub lengths: KeyLengths,
}

impl<'a> Said<'a> {
    /// A header's value without blanks around it, if anything is left.
    pub(super) fn header(&self, name: &str) -> Option<&'a str> {
        (self.header)(name).map(str::trim).filter(|value| !value.is_empty())
    }

    fn field(&self, key: Key) -> Option<&'a str> {
        self.json.and_then(|(facts, body)| facts.text(key, body))
    }

    /// A field of the body that is a string and not blank.
    pub(super) fn text(&self, key: Key) -> Option<Cow<'a, str>> {
        string(self.field(key)?).filter(|text| !text.trim().is_empty())
    }

    /// The text in a field of the body, normalised and cut to `limit` bytes, unless it is empty.
    pub(super) fn normal(&self, key: Key, limit: usize) -> Option<String> {
        let mut excerpt = Excerpt::normal(limit);
        excerpt.take(self.field(key)?);
        Some(excerpt.into_text()).filter(|text| !text.is_empty())
    }

    /// The text of the first of the body's `documents`.
    pub(super) fn first_document(&self) -> Option<String> {
        let mut excerpt = Excerpt::normal(self.lengths.document);
        excerpt.take_first(self.field(Key::Documents)?);
        Some(excerpt.into_text()).filter(|text| !text.is_empty())
    }

    /// How the conversation begins, with at most `limit` bytes of each text.
    pub(super) fn opening(&self, limit: usize) -> Opening {
        self.json.map_or_else(Opening::default, |(facts, body)| facts.opening(body, limit))
    }

    /// The first `count` system prompts.
    pub(super) fn system_prompts(&self, count: usize) -> Vec<String> {
        let limit = self.lengths.system;
        self.json.map_or_else(Vec::new, |(facts, body)| facts.system_prompts(body, count, limit))
    }
}
