//! The turns of one conversation go to one endpoint: by a session's name where the client gives one,
//! else by how the conversation begins, which every later turn repeats.

use super::choice::Choice;
use super::key::{Key, Source};
use super::said::Said;
use crate::openai::facts;

/// As much of the system prompt, and of the first message, as tells conversations apart.
const OPENING: usize = 4096;

pub(super) struct SessionAffinity;

impl Choice for SessionAffinity {
    fn key(&self, said: &Said<'_>) -> Option<Key> {
        named(said).or_else(|| opening(said))
    }
}

/// `X-Session-ID`, then `X-Conversation-ID`, then the body's `session_id`.
fn named(said: &Said<'_>) -> Option<Key> {
    let header = |name, source| Some(Key::new(source, said.header(name)?));
    header("x-session-id", Source::SessionHeader)
        .or_else(|| header("x-conversation-id", Source::ConversationHeader))
        .or_else(|| Some(Key::new(Source::SessionBody, said.text(facts::Key::SessionId)?.trim())))
}

/// The system prompt and the first message of the user. Neither changes from turn to turn.
fn opening(said: &Said<'_>) -> Option<Key> {
    let opening = said.opening(OPENING);
    if opening.is_empty() {
        return None;
    }
    let parts = [opening.system.as_bytes(), b"\0", opening.user.as_bytes()];
    Some(Key::digest(Source::SessionMessages, "msg:", &parts))
}
