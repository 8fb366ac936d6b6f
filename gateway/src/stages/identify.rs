//! Finds out who asks, and takes out of the head what is for the gateway alone: an engine or a log
//! sees no key, and nobody outside can speak for a gateway.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use flexinfer_core::callers::{CREDENTIALS, Caller, Carrier, Presented, SUBPROTOCOL, is_internal};
use flexinfer_core::rejection::Rejection;
use http::header::{HeaderName, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, HeaderValue};
use pingora_proxy::Session;

use super::receive::REQUEST_ID_NAME;
use super::{fields, marks};
use crate::context::Context;
use crate::keys::Keys;
use crate::parts::Parts;

/// Puts the caller into the context; without keys everybody is let in. The head is then as every engine
/// may see it.
pub(crate) fn identify(
    parts: &Parts,
    session: &mut Session,
    context: &mut Context,
) -> Result<(), Rejection> {
    let head = session.req_header_mut();
    let keys = parts.rules.keys.as_ref();
    if let Some(keys) = keys {
        context.ruled.caller = Some(caller(keys, &head.headers)?);
        // It goes with the other cookies.
        context.ruled.mark = marks::carried(&head.headers);
    }
    let id = context.request_id.as_ref();
    let changed = fields::change_request(head, |fields| {
        strip(fields, keys.is_some());
        if let Some(id) = id {
            fields.insert(REQUEST_ID_NAME, id.clone());
        }
    });
    changed.map_err(|_| Rejection::Internal)
}

/// Whose key `headers` present.
pub(crate) fn caller(keys: &Keys, headers: &HeaderMap) -> Result<Arc<Caller>, Rejection> {
    let presented = Presented::by(carried(headers));
    keys.current().identify(presented, now()).map(Arc::clone)
}

/// What a head has few of is looked for among what it has: that is less work than to look each of them up.
fn carried(headers: &HeaderMap) -> impl Iterator<Item = (Carrier, &[u8])> {
    headers.iter().filter_map(|(name, value)| {
        Carrier::of(name.as_str()).map(|carrier| (carrier, value.as_bytes()))
    })
}

/// Takes out what is for the gateway alone: internal headers, and where callers are known what says who asks.
fn strip(fields: &mut HeaderMap, known: bool) {
    let private = |name: &&HeaderName| {
        let name = name.as_str();
        is_internal(name) || known && CREDENTIALS.contains(&name)
    };
    while let Some(name) = fields.keys().find(private).cloned() {
        fields.remove(name);
    }
    if known && fields.keys().any(|name| *name == SEC_WEBSOCKET_PROTOCOL) {
        strip_subprotocol(fields);
    }
}

fn strip_subprotocol(fields: &mut HeaderMap) {
    let Some(names) = fields.remove(SEC_WEBSOCKET_PROTOCOL) else { return };
    let others: Vec<&str> = names
        .to_str()
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|name| !name.starts_with(SUBPROTOCOL))
        .collect();
    if !others.is_empty()
        && let Ok(others) = HeaderValue::try_from(others.join(", "))
    {
        fields.insert(SEC_WEBSOCKET_PROTOCOL, others);
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
