//! Passes the engine's answer on, byte for byte and as it comes.

use bytes::Bytes;
use flexinfer_core::openai::UsageReader;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use pingora_core::Result;
use pingora_http::ResponseHeader;

use super::receive::REQUEST_ID;
use crate::context::Context;

/// Asks reverse proxies of nginx's kind not to collect a stream before they pass it on.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The engine answers: from here on nothing is tried again, so its request need not be kept.
pub(crate) fn begin(head: &mut ResponseHeader, context: &mut Context) -> Result<()> {
    if head.status.is_informational() {
        return Ok(());
    }
    context.answer.status = Some(head.status.as_u16());
    context.answer.first_byte = Some(context.started.elapsed());
    if let Some(id) = &context.request_id {
        head.insert_header(REQUEST_ID, id.clone())?;
    }
    let events = head.headers.get(CONTENT_TYPE).is_some_and(is_event_stream);
    if events {
        head.insert_header(ACCEL_BUFFERING, HeaderValue::from_static("no"))?;
        head.insert_header(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"))?;
    }
    let text = |name| head.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    context.answer.usage = UsageReader::for_answer(text(CONTENT_TYPE), text(CONTENT_ENCODING));
    // What is still on its way to the engine has its own hold on the bytes.
    context.body = None;
    Ok(())
}

/// Looks at a piece of the answer as it goes by. With the last one the engine is done: its slot is free,
/// however slowly the client takes the rest.
pub(crate) fn pass(piece: Option<&Bytes>, end: bool, context: &mut Context) {
    if let Some(piece) = piece
        && let Some(usage) = &mut context.answer.usage
    {
        usage.look(piece);
    }
    if end {
        context.attempt.booking = None;
    }
}

fn is_event_stream(content_type: &HeaderValue) -> bool {
    const EVENT_STREAM: &[u8] = b"text/event-stream";
    content_type
        .as_bytes()
        .get(..EVENT_STREAM.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(EVENT_STREAM))
}
