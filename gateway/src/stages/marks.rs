//! The mark of a client that has something on one engine: a cookie, which browsers and sessions of HTTP libraries bring
//! back with all that they ask. It says itself which engine that is, so that every gateway can tell.

use flexinfer_core::ids::{EndpointId, ModelId};
use flexinfer_core::routing::mark;
use http::header::{COOKIE, SET_COOKIE};
use http::{HeaderMap, HeaderValue};
use pingora_proxy::Session;

use crate::parts::Parts;

/// The cookie's name.
const NAME: &str = "flexinfer-engine";

/// A mark is so long, in characters.
const LENGTH: usize = 16;

/// A mark that a request brings, and the engine that gives it, if it is still there.
pub(super) struct Marked {
    pub(super) mark: String,
    pub(super) engine: Option<EndpointId>,
}

/// What the request brings for `model`, whose engines have names.
pub(super) fn brought(parts: &Parts, session: &Session, model: &ModelId) -> Option<Marked> {
    let lines = session.req_header().headers.get_all(COOKIE).iter();
    let crumbs = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(';'));
    let mut ours = crumbs.filter_map(|crumb| crumb.trim().strip_prefix(NAME)?.strip_prefix('='));
    let is_mark = |text: &&str| text.len() == LENGTH && text.bytes().all(|b| b.is_ascii_hexdigit());
    let brought = ours.find(is_mark)?.to_owned();
    let engines = parts.dispatch.engines(model)?;
    let engine = engines.into_iter().find(|engine| mark(engine) == brought);
    Some(Marked { mark: brought, engine })
}

/// Gives a mark to a client, for what lies below `prefix`.
pub(super) fn give(fields: &mut HeaderMap, mark: &str, prefix: &str) {
    // A path with one of these would say something else.
    if prefix.contains([';', ',']) {
        return;
    }
    let cookie = format!("{NAME}={mark}; Path={prefix}; HttpOnly; SameSite=Lax");
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        fields.append(SET_COOKIE, cookie);
    }
}
