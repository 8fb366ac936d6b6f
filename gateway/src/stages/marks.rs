//! The mark of a client that has something on one engine: a cookie, which browsers and sessions of HTTP libraries bring
//! back with all that they ask. It says itself which engine that is, so that every gateway can tell.

use flexinfer_core::ids::{EndpointId, ModelId};
use flexinfer_core::routing::{ClientNumber, Mark};
use http::header::{COOKIE, SET_COOKIE};
use http::{HeaderMap, HeaderValue};
use pingora_proxy::Session;

use crate::context::Context;
use crate::parts::Parts;

/// The cookie's name.
const NAME: &str = "flexinfer-engine";

/// A mark that a request brings, and the engine that it leads to, if that is still there.
pub(super) struct Marked {
    pub(super) mark: Mark,
    pub(super) engine: Option<EndpointId>,
}

/// The mark in the cookies of a head.
pub(super) fn carried(headers: &HeaderMap) -> Option<Mark> {
    let lines = headers.get_all(COOKIE).iter();
    let crumbs = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(';'));
    let mut ours = crumbs.filter_map(|crumb| crumb.trim().strip_prefix(NAME)?.strip_prefix('='));
    ours.find_map(Mark::read)
}

/// What the request brings for `model`, whose engines have names.
pub(super) fn brought(
    parts: &Parts,
    session: &Session,
    context: &Context,
    model: &ModelId,
) -> Option<Marked> {
    let mark = context.ruled.mark.or_else(|| carried(&session.req_header().headers))?;
    let engines = parts.dispatch.engines(model)?;
    let engine = engines.into_iter().find(|engine| mark.is_at(engine));
    Some(Marked { mark, engine })
}

/// A client that nobody has met.
pub(super) fn new_client() -> ClientNumber {
    ClientNumber(rand::random())
}

/// Gives a mark to a client, for what lies below `prefix`.
pub(super) fn give(fields: &mut HeaderMap, mark: Mark, prefix: &str) {
    // A path with one of these would say something else.
    if prefix.contains([';', ',']) {
        return;
    }
    let cookie = format!("{NAME}={mark}; Path={prefix}; HttpOnly; SameSite=Lax");
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        fields.append(SET_COOKIE, cookie);
    }
}
