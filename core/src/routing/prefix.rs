//! Requests that begin with the same words go to one endpoint, whose engine has worked those out
//! already: by a key that the client gives, else by the system prompt and the first document.
//! Without either, the turns of a conversation at least stay together.

use super::choice::Choice;
use super::key::{Key, Source};
use super::said::Said;
use super::session_affinity::SessionAffinity;
use crate::openai::facts;

/// System messages that count.
const SYSTEM_MESSAGES: usize = 3;

/// Where a document may stand, in this order.
const DOCUMENT: [facts::Key; 3] =
    [facts::Key::DocumentContext, facts::Key::DocumentContextCamel, facts::Key::Context];

pub(super) struct Prefix;

impl Choice for Prefix {
    fn key(&self, said: &Said<'_>) -> Option<Key> {
        explicit(said).or_else(|| field(said)).or_else(|| canonical(said)).or_else(|| {
            let session = SessionAffinity.key(said)?;
            Some(Key::new(Source::SessionFallback, session.text()))
        })
    }
}

/// The header `X-Flexinfer-Cache-Key`, then the body's `cache_key`, then `cacheKey`.
fn explicit(said: &Said<'_>) -> Option<Key> {
    let key = |source, text: &str| {
        let text = text.trim().to_ascii_lowercase();
        let usable = (1..=said.lengths.explicit).contains(&text.len());
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:/=-".contains(&byte);
        (usable && text.bytes().all(plain)).then(|| Key::digest(source, "exp:", &[text.as_bytes()]))
    };
    let field = |name| key(Source::ExplicitBody, &said.text(name)?);
    said.header("x-flexinfer-cache-key")
        .and_then(|text| key(Source::ExplicitHeader, text))
        .or_else(|| field(facts::Key::CacheKey))
        .or_else(|| field(facts::Key::CacheKeyCamel))
}

/// The body's `prefix`.
fn field(said: &Said<'_>) -> Option<Key> {
    let text = said.normal(facts::Key::Prefix, said.lengths.system)?;
    Some(Key::digest(Source::PrefixField, "pfx:", &[text.as_bytes()]))
}

/// The system messages that begin the conversation, and the first document beside it.
fn canonical(said: &Said<'_>) -> Option<Key> {
    let system = said.system_prompts(SYSTEM_MESSAGES).join(" ");
    let document = DOCUMENT
        .iter()
        .find_map(|key| said.normal(*key, said.lengths.document))
        .or_else(|| said.first_document());
    let material = match (system.as_str(), document) {
        ("", None) => return None,
        ("", Some(document)) => format!("doc={document}"),
        (system, None) => format!("system={system}"),
        (system, Some(document)) => format!("system={system}|doc={document}"),
    };
    Some(Key::digest(Source::Canonical, "sys:", &[material.as_bytes()]))
}
