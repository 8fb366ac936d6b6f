//! Writes the request for the engine: its own name for the model, its own path, a length; every other
//! byte of the body as the client sent it.

use std::borrow::Cow;
use std::net::SocketAddr;

use flexinfer_core::effective::EngineProtocol;
use flexinfer_core::fleet::Served;
use flexinfer_core::openai::{Understood, query};
use flexinfer_core::rewriting::for_engine;
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, COOKIE, EXPECT, HOST, HeaderName, ORIGIN,
    SEC_WEBSOCKET_EXTENSIONS, TRANSFER_ENCODING,
};
use http::uri::Authority;
use http::{HeaderValue, Version};
use pingora_core::{Error, ErrorType, OrErr, Result};
use pingora_http::RequestHeader;
use pingora_proxy::Session;

use super::limit;
use super::receive::REQUEST_ID_NAME;
use crate::context::{Body, Context, Stored, Target};
use crate::decimal::Backwards;
use crate::parts::{Limits, Parts};
use crate::replay::{Replay, Rest, Upload, Watch};
use crate::way::Way;

/// Tells an engine with pages of its own where they lie for the client.
const FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// Why a request does not go on to an engine that speaks another protocol than it was to be spoken to in.
pub(crate) const UNAGREED: &str = "EngineProtocol";

/// Shapes the head, and puts the body where Pingora takes it from.
pub(crate) fn send(
    parts: &Parts,
    session: &mut Session,
    head: &mut RequestHeader,
    context: &mut Context,
) -> Result<()> {
    head.remove_header(&EXPECT);
    // It is there already, unless the client has called it its connection's own.
    if let Some(id) =
        context.request_id.as_ref().filter(|_| !head.headers.contains_key(REQUEST_ID_NAME))
    {
        head.insert_header(REQUEST_ID_NAME, id.clone())?;
    }
    context.spans.carry(head)?;
    let Some((target, booking)) = context.target.as_ref().zip(context.attempt.booking.as_ref())
    else {
        return Ok(());
    };
    if let Some(charged) = &mut context.ruled.charged {
        charged.seen();
    }
    let way = Way::to(booking.address, &booking.served.effective, &parts.rules.secrets);
    if let Some(key) = way.key() {
        head.insert_header(AUTHORIZATION, key)?;
    }
    if let Some(prefix) = &target.prefix {
        head.insert_header(FORWARDED_PREFIX, prefix.as_str())?;
    }
    insist(head, session, &booking.served)?;
    one_cookie(head, session)?;
    address_to(head, &way)?;
    let name = target.name_for_engine(&booking.served);
    let path = path(target, name);
    // Mostly it is the path that the client asked for.
    if head.raw_path() != path.as_bytes() {
        head.set_raw_path(path.as_bytes())?;
    }
    if target.stream || is_read(context) && head.headers.contains_key(ACCEPT_ENCODING) {
        // A compressed stream of events is held back until a block is full, and what is compressed cannot be read.
        head.insert_header(ACCEPT_ENCODING, HeaderValue::from_static("identity"))?;
    }
    if context.attempt.websocket && (is_read(context) || context.answer.session.is_some()) {
        // Nor are the messages of a socket that agrees on compressing them.
        head.remove_header(&SEC_WEBSOCKET_EXTENSIONS);
    }
    let Some(body) = context.body.as_mut() else { return Ok(()) };
    let rest = body.rest.take();
    let upload = upload(body, name.filter(|_| target.listed || body.understood.model().is_some()))?;
    let coming = rest.as_ref().map_or(Some(0), Rest::length);
    frame(head, coming.map(|coming| upload.len() as u64 + coming))?;
    context.attempt.streams = rest.is_some();
    context.attempt.replay = Some(Replay::begin(&mut session.downstream_session, upload, rest));
    Ok(())
}

/// Whether the answer is read on its way: for the tokens that it tells, or an id.
fn is_read(context: &Context) -> bool {
    let tells = |body: &Body| !matches!(body.understood, Understood::Opaque);
    context.body.as_ref().is_some_and(tells)
        || matches!(context.answer.stored, Some(Stored::Recalled(_)))
        || context.attempt.tied.as_ref().is_some_and(|tied| tied.is_read())
}

/// Says how long the body is; where nobody knows, that it comes in chunks, which HTTP/2 need not be told.
fn frame(head: &mut RequestHeader, length: Option<u64>) -> Result<()> {
    head.remove_header(&TRANSFER_ENCODING);
    match length {
        Some(length) => head.insert_header(CONTENT_LENGTH, length.to_string()),
        None if head.version == Version::HTTP_2 => Ok(()),
        None => head.insert_header(TRANSFER_ENCODING, HeaderValue::from_static("chunked")),
    }
}

/// Everything was sent, or an answer has begun: from now on the engine may be silent for so long. Only the
/// shorter of the two limits has to be watched, the other one is Pingora's.
pub(crate) fn watch(limits: &Limits, session: &mut Session, context: &mut Context) {
    unwatch(session, context);
    let (limit, other) = match context.answer.status {
        None => (limits.first_byte, limits.silence),
        Some(_) => (limits.silence, limits.first_byte),
    };
    // What became something else than HTTP may be silent, which Pingora is told beforehand; and a body that is still
    // on its way has a stand-in already.
    let upgraded = limit::switched(context);
    let ours = limit < other || context.attempt.websocket;
    if ours && !upgraded && context.attempt.replay.is_none() {
        context.attempt.watch = Some(Watch::begin(&mut session.downstream_session, limit));
    }
}

/// Nothing more is waited for. True if the engine was silent for too long.
pub(crate) fn unwatch(session: &mut Session, context: &mut Context) -> bool {
    let watch = context.attempt.watch.take();
    watch.is_some_and(|watch| watch.end(&mut session.downstream_session))
}

/// Gives the client's session back once the last of the body is on its way, or when there is no way.
pub(crate) fn sent(session: &mut Session, context: &mut Context) {
    let Some(replay) = context.attempt.replay.take() else { return };
    let Some(mut rest) = replay.end(&mut session.downstream_session) else { return };
    context.attempt.streamed = rest.begun();
    context.attempt.rejection = rest.refusal();
    if let Some(body) = &mut context.body {
        body.rest = Some(rest);
    }
}

/// Puts a cookie together again that a client of HTTP/2 has sent in crumbs, which HTTP/1.1 does not know
/// (RFC 9113, 8.2.3).
fn one_cookie(head: &mut RequestHeader, session: &Session) -> Result<()> {
    if !session.is_http2() || head.version == Version::HTTP_2 {
        return Ok(());
    }
    let crumbs: Vec<&[u8]> =
        head.headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if crumbs.len() < 2 {
        return Ok(());
    }
    let cookie = HeaderValue::from_bytes(&crumbs.join(&b"; "[..]));
    head.insert_header(COOKIE, cookie.or_err(ErrorType::InternalError, "a cookie")?)
}

/// Refuses to speak HTTP/1.1 to an engine that is to be spoken to by HTTP/2 and has not agreed to it.
fn insist(head: &RequestHeader, session: &Session, served: &Served) -> Result<()> {
    let insisted = served.effective.spoken.protocol == EngineProtocol::H2;
    let websocket = session.downstream_session.is_upgrade_req();
    if insisted && !websocket && head.version != Version::HTTP_2 {
        return Error::e_explain(ErrorType::Custom(UNAGREED), "the engine offers no HTTP/2");
    }
    Ok(())
}

/// Names the engine as the host. A page that came from here asks from here: its origin is the engine's own
/// then, since engines with a page compare the two (HTTP-23). Any other origin is told as it is.
fn address_to(head: &mut RequestHeader, way: &Way<'_>) -> Result<()> {
    let secured = way.spoken.tls_name.is_some();
    let engine = if secured {
        HeaderValue::try_from(way.host()).or_err(ErrorType::InternalError, "an engine's name")?
    } else {
        // Mostly an engine is called by its address, which is written without a detour.
        address(way.address)
    };
    let origin = head.headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let from = origin.and_then(|origin| origin.split_once("://")).map(|(_, from)| from);
    let host = head
        .uri
        .authority()
        .map(Authority::as_str)
        .or_else(|| head.headers.get(HOST).and_then(|host| host.to_str().ok()));
    if from.is_some_and(|from| Some(from) == host) {
        let engine = engine.to_str().unwrap_or_default();
        let scheme = if secured { "https" } else { "http" };
        head.insert_header(ORIGIN, format!("{scheme}://{engine}"))?;
    }
    head.insert_header(HOST, engine)
}

/// What an engine at `address` is called.
fn address(address: SocketAddr) -> HeaderValue {
    let SocketAddr::V4(version_4) = address else {
        return HeaderValue::try_from(address.to_string())
            .unwrap_or_else(|_| HeaderValue::from_static("localhost"));
    };
    let [a, b, c, d] = version_4.ip().octets();
    let mut text = Backwards::new();
    text.number(version_4.port().into());
    for (octet, after) in [(d, b':'), (c, b'.'), (b, b'.'), (a, b'.')] {
        text.byte(after);
        text.number(octet.into());
    }
    HeaderValue::from_bytes(text.text()).unwrap_or_else(|_| HeaderValue::from_static("localhost"))
}

/// Path and query as the engine shall see them, which calls its model `name`.
fn path<'t>(target: &'t Target, name: Option<&str>) -> Cow<'t, str> {
    let renamed = name.filter(|_| target.named_in_query);
    match renamed.and_then(|name| Some((name, target.path.split_once('?')?))) {
        Some((name, (path, query))) => {
            Cow::Owned(format!("{path}?{}", query::with_model(query, name)))
        }
        None => Cow::Borrowed(&target.path),
    }
}

/// The body as the engine shall see it, which calls its model `name`.
fn upload<'a>(body: &'a mut Body, name: Option<&str>) -> Result<&'a Upload> {
    let mut splices = for_engine(&body.understood, name);
    splices.extend_from_slice(&body.changes);
    // The spans were found in this very body: that they do not fit is a fault of ours, answered as one.
    let upload = Upload::spliced(&body.received, splices)
        .or_err(ErrorType::InternalError, "splicing a body")?;
    Ok(body.upload.insert(upload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_called_by_its_address() {
        for text in ["127.0.0.1:8000", "10.255.0.20:65535", "[::1]:80"] {
            assert_eq!(address(text.parse().expect("an address")), text);
        }
    }
}
