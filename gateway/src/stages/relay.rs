//! Passes the engine's answer on, byte for byte and as it comes.

use bytes::Bytes;
use flexinfer_core::openai::{Pieces, Stream, UsageReader};
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, TRANSFER_ENCODING,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use pingora_core::Result;
use pingora_http::ResponseHeader;

use super::receive::REQUEST_ID_NAME;
use super::settle::{self, Ending};
use super::{cors, fields, limit, redirect, tie};
use crate::context::{Context, Stored};
use crate::parts::Parts;

/// Asks reverse proxies of nginx's kind not to collect a stream before they pass it on.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Tells how many tokens were asked for, and how many were in their place.
const CLAMPED: HeaderName = HeaderName::from_static("x-flexinfer-maxtokens-clamped");

/// Whether a head with this status announces an answer and is none. One that makes the connection something else than
/// HTTP is the answer.
pub(crate) fn is_interim(status: StatusCode) -> bool {
    status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS
}

/// The engine answers: from here on nothing is tried again, so its request need not be kept.
pub(crate) fn begin(head: &mut ResponseHeader, context: &mut Context) -> Result<()> {
    if let Some(together) = context.attempt.together.take() {
        together.send();
    }
    if is_interim(head.status) {
        return Ok(());
    }
    context.answer.status = Some(head.status.as_u16());
    context.answer.first_byte = Some(context.started.elapsed());
    let kind = head.headers.get(CONTENT_TYPE);
    let coding = head.headers.get(CONTENT_ENCODING);
    let usage = UsageReader::for_answer(text(kind), text(coding));
    context.answer.stream = kind.map(HeaderValue::as_bytes).and_then(Stream::of);
    let usage = usage.filter(|_| context.answer.stored != Some(Stored::Foreign));
    context.answer.usage = usage.map(|reader| reader.in_dialect(context.dialect));
    // What is still on its way to the engine has its own hold on the bytes.
    context.body = None;
    let redirects = head.status.is_redirection();
    let succeeds = head.status.is_success() || head.status == StatusCode::SWITCHING_PROTOCOLS;
    fields::change(head, |fields| {
        if redirects
            && let Some((booking, target)) =
                context.attempt.booking.as_ref().zip(context.target.as_ref())
        {
            let spoken = &booking.served.effective.spoken;
            redirect::lead_back(fields, booking.address, spoken, target.prefix.as_deref());
        }
        tie::mark_client(fields, succeeds, context);
        tell(fields, context);
    })
}

fn text(value: Option<&HeaderValue>) -> Option<&str> {
    value.and_then(|value| value.to_str().ok())
}

/// What the answer says beside what the engine does.
fn tell(fields: &mut HeaderMap, context: &mut Context) {
    if let Some(id) = &context.request_id {
        fields.insert(REQUEST_ID_NAME, id.clone());
    }
    let events = context.answer.stream == Some(Stream::Events);
    if events {
        fields.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    }
    if let Some(clamped) = context.ruled.clamped.take() {
        fields.insert(CLAMPED, clamped);
    }
    if let Some(charged) = &context.ruled.charged {
        limit::tell(fields, &charged.standing());
    }
    cors::tell(fields, context);
    follow_stream(fields, context, events);
}

/// Counts a stream's pieces where a limit asks for it, and prepares for the one that is taken out.
fn follow_stream(fields: &mut HeaderMap, context: &mut Context, events: bool) {
    context.answer.whole = true;
    let charged = context.ruled.charged.is_some();
    context.answer.counted = context.answer.stream.filter(|_| charged).map(Pieces::of);
    let readable = events && context.answer.usage.is_some();
    context.ruled.usage_events.take_if(|_| !readable);
    if context.ruled.usage_events.is_some() && fields.remove(CONTENT_LENGTH).is_some() {
        fields.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
}

/// Looks at a piece of the answer as it goes by. With the last one the engine is done: its slot is free,
/// however slowly the client takes the rest.
pub(crate) fn pass(parts: &Parts, piece: &mut Option<Bytes>, end: bool, context: &mut Context) {
    if let Some(bytes) = piece {
        if let Some(usage) = &mut context.answer.usage {
            usage.look(bytes);
        }
        if let Some(counted) = &mut context.answer.counted {
            counted.look(bytes);
        }
    }
    if let Some(events) = &mut context.ruled.usage_events {
        let passed = events.pass(piece.as_deref().unwrap_or_default(), end);
        *piece = (piece.is_some() || !passed.is_empty()).then_some(passed);
    }
    if let Some(stream) = context.answer.stream
        && let Some(last) = piece.as_ref().filter(|piece| !piece.is_empty())
    {
        context.answer.whole = stream.is_whole(last);
        if context.answer.pieces.is_none() {
            let first = context.started.elapsed();
            context.answer.pieces = Some((first, first));
        }
    }
    if end {
        if let Some((_, last)) = &mut context.answer.pieces {
            *last = context.started.elapsed();
        }
        settle::settle(parts, context, Ending::Whole);
        context.attempt.booking = None;
    }
}
