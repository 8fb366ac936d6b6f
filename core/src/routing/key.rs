//! What requests have in common that shall meet the same endpoint.

use sha2::{Digest as _, Sha256};

/// Where a key was found, as the label `key_source` of the metrics says it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display, strum::EnumIter, strum::IntoStaticStr,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Source {
    /// `X-Session-ID`.
    SessionHeader,
    /// `X-Conversation-ID`.
    ConversationHeader,
    /// The body's `session_id`.
    SessionBody,
    /// How the conversation begins.
    SessionMessages,
    /// `X-Flexinfer-Cache-Key`.
    ExplicitHeader,
    /// The body's `cache_key` or `cacheKey`.
    ExplicitBody,
    /// The body's `prefix`.
    PrefixField,
    /// The system prompt and the first document.
    Canonical,
    /// A session's key in place of a prefix's.
    SessionFallback,
    /// The id of a client whose state is on one endpoint.
    ClientId,
    /// A client that gives no id, as far as it can be told from others.
    Client,
    /// What a client brings back that was given it by an answer.
    Mark,
    /// A response that an endpoint stores.
    ResponseId,
    /// A job of ComfyUI.
    PromptId,
}

impl Source {
    /// Whether another endpoint cannot serve the request: the key is not passed on for load.
    pub fn binds(self) -> bool {
        matches!(self, Self::ClientId | Self::Client | Self::Mark)
    }
}

/// A key: requests with the same text go to the same endpoint, as far as load and readiness allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    source: Source,
    text: Box<str>,
}

impl Key {
    /// The key `text`, found at `source`.
    pub fn new(source: Source, text: &str) -> Self {
        Self { source, text: text.into() }
    }

    /// `prefix` and the first 16 hexadecimal digits of the SHA-256 over all of `parts`.
    pub(super) fn digest(source: Source, prefix: &str, parts: &[&[u8]]) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update(part);
        }
        let digest: [u8; 32] = digest.finalize().into();
        let start = digest.first_chunk().copied().map_or(0, u64::from_be_bytes);
        Self { source, text: format!("{prefix}{start:016x}").into() }
    }

    /// Where it was found.
    pub fn source(&self) -> Source {
        self.source
    }

    /// A number that tells it apart from others, for counting.
    pub fn fingerprint(&self) -> u64 {
        let digest: [u8; 32] = Sha256::digest(self.text.as_bytes()).into();
        digest.first_chunk().copied().map_or(0, u64::from_be_bytes)
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }
}
