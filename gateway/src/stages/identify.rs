//! Finds out who asks, and takes out of the head what is for the gateway alone: an engine or a log
//! sees no key, and nobody outside can speak for a gateway.

use std::sync::{Arc, LazyLock};
use std::time::{SystemTime, UNIX_EPOCH};

use flexinfer_core::callers::{CREDENTIALS, Caller, Carrier, Presented, SUBPROTOCOL, is_internal};
use flexinfer_core::rejection::Rejection;
use http::header::{HeaderName, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, HeaderValue};
use pingora_http::RequestHeader;
use pingora_proxy::Session;
use strum::IntoEnumIterator as _;

use crate::context::Context;
use crate::keys::Keys;
use crate::parts::Parts;

/// The headers that may carry a key, ready to be looked up.
static CARRIERS: LazyLock<Vec<(Carrier, HeaderName)>> = LazyLock::new(|| {
    Carrier::iter().map(|carrier| (carrier, HeaderName::from_static(carrier.header()))).collect()
});

/// Those that say who asks.
static CREDENTIAL_HEADERS: LazyLock<[HeaderName; CREDENTIALS.len()]> =
    LazyLock::new(|| CREDENTIALS.map(HeaderName::from_static));

/// Puts the caller into the context; without keys everybody is let in.
pub(crate) fn identify(
    parts: &Parts,
    session: &mut Session,
    context: &mut Context,
) -> Result<(), Rejection> {
    let head = session.req_header_mut();
    strip_internal(head);
    let Some(keys) = &parts.rules.keys else { return Ok(()) };
    context.ruled.caller = Some(caller(keys, &head.headers)?);
    strip_credentials(head);
    Ok(())
}

/// Whose key `headers` present.
pub(crate) fn caller(keys: &Keys, headers: &HeaderMap) -> Result<Arc<Caller>, Rejection> {
    let presented = Presented::by(carried(headers));
    keys.current().identify(presented, now()).map(Arc::clone)
}

fn carried(headers: &HeaderMap) -> impl Iterator<Item = (Carrier, &[u8])> {
    CARRIERS.iter().flat_map(move |(carrier, name)| {
        let values = headers.get_all(name).iter();
        values.map(move |value| (*carrier, value.as_bytes()))
    })
}

fn strip_internal(head: &mut RequestHeader) {
    let internal = |name: &&HeaderName| is_internal(name.as_str());
    // Hardly any request has one.
    while let Some(name) = head.headers.keys().find(internal).cloned() {
        head.remove_header(&name);
    }
}

fn strip_credentials(head: &mut RequestHeader) {
    for name in CREDENTIAL_HEADERS.iter() {
        head.remove_header(name);
    }
    let Some(names) = head.headers.get(SEC_WEBSOCKET_PROTOCOL).cloned() else { return };
    let others: Vec<&str> = names
        .to_str()
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(|name| !name.starts_with(SUBPROTOCOL))
        .collect();
    head.remove_header(&SEC_WEBSOCKET_PROTOCOL);
    if !others.is_empty()
        && let Ok(others) = HeaderValue::try_from(others.join(", "))
    {
        // The name is known and the value was made of a valid one.
        let _ = head.insert_header(SEC_WEBSOCKET_PROTOCOL, others);
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
