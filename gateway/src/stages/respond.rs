//! Writes what the gateway says by itself: rejections and the answers at its own paths.

use std::time::Duration;

use bytes::Bytes;
use flexinfer_core::limits::limited_headers;
use flexinfer_core::openai::{CONTENT_TYPE as JSON, error_body};
use flexinfer_core::rejection::Rejection;
use http::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, UPGRADE,
    WWW_AUTHENTICATE,
};
use http::{HeaderName, HeaderValue, Method};
use pingora_core::Result;
use pingora_core::protocols::http::ServerSession;
use pingora_http::ResponseHeader;
use pingora_proxy::Session;

use super::receive::REQUEST_ID;
use super::{cors, fields};
use crate::context::Context;

/// How long a client may go on sending what nobody reads any more, so that it sees the answer before the
/// connection is reset.
const LINGER: Duration = Duration::from_secs(5);

/// An answer from the gateway's own paths.
pub(crate) struct Own {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: Bytes,
}

impl Own {
    pub(crate) fn json(body: Vec<u8>) -> Self {
        Self { status: 200, content_type: JSON, body: body.into() }
    }

    pub(crate) fn text(status: u16, text: &'static str) -> Self {
        let body = Bytes::from_static(text.as_bytes());
        Self { status, content_type: "text/plain; charset=utf-8", body }
    }
}

/// Writes `own` whole.
pub(crate) async fn own(session: &mut Session, context: &Context, own: Own) -> Result<()> {
    let head = head(context, own.status, own.content_type, own.body.len())?;
    write(session, head, own.body).await
}

/// Tells a browser whether its page may ask.
pub(crate) async fn preflight(session: &mut Session, context: &Context) -> Result<()> {
    let mut head = ResponseHeader::build(204, Some(6))?;
    fields::change(&mut head, |fields| cors::tell(fields, context))?;
    cors::tell_before(&mut head, session, context)?;
    write(session, head, Bytes::new()).await
}

/// Tells programs why, in dialects too that have no place for a code.
const ERROR_CODE: HeaderName = HeaderName::from_static("x-flexinfer-error-code");

/// Tells OpenAI's clients whether to try again by themselves.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Writes `rejection` in the words of the API that was called.
pub(crate) async fn reject(
    session: &mut Session,
    context: &mut Context,
    rejection: &Rejection,
) -> Result<()> {
    context.answer.rejected = Some(rejection.code());
    if matches!(rejection, Rejection::InvalidFraming { .. }) {
        // Where the next request begins cannot be told.
        session.set_keepalive(None);
    }
    let id = context.request_id.as_ref().and_then(|id| id.to_str().ok());
    let body = Bytes::from(error_body(context.dialect, rejection, id));
    let mut head = head(context, rejection.status(), JSON, body.len())?;
    head.insert_header(ERROR_CODE, HeaderValue::from_static(rejection.code()))?;
    head.insert_header(CACHE_CONTROL, HeaderValue::from_static("no-store"))?;
    if let Some(after) = rejection.retry_after() {
        head.insert_header(RETRY_AFTER, after.as_secs())?;
    }
    if rejection.is_final() {
        head.insert_header(SHOULD_RETRY, HeaderValue::from_static("false"))?;
    }
    if let Some(limited) = rejection.limited() {
        for (name, value) in limited_headers(limited) {
            head.insert_header(name, &*value)?;
        }
    }
    if rejection.status() == 401 {
        head.insert_header(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))?;
    }
    if matches!(rejection, Rejection::CompressedBody { .. }) {
        head.insert_header(ACCEPT_ENCODING, HeaderValue::from_static("identity"))?;
    }
    if let Some(allow) = rejection.allow() {
        head.insert_header(ALLOW, HeaderValue::from_static(allow))?;
    }
    // HTTP/2 knows no such header.
    if let Some(upgrade) = rejection.upgrade().filter(|_| !session.is_http2()) {
        head.insert_header(UPGRADE, HeaderValue::from_static(upgrade))?;
    }
    write(session, head, body).await
}

/// Ends a stream that its engine did not end, by a last event that says so: a stream that just
/// stopped would look whole to many clients. Any other answer is left broken off, which is how HTTP says
/// it.
pub(crate) async fn break_off(
    session: &mut Session,
    context: &Context,
    rejection: &Rejection,
) -> Result<()> {
    let has_length =
        session.response_written().is_some_and(|head| head.headers.contains_key(CONTENT_LENGTH));
    let Some(stream) = context.answer.stream.filter(|_| !has_length) else { return Ok(()) };
    let id = context.request_id.as_ref().and_then(|id| id.to_str().ok());
    let whole = context.answer.whole;
    let last_words = stream.last_words(context.dialect, rejection, id, whole);
    session.downstream_session.write_response_body(last_words.into(), true).await
}

fn head(
    context: &Context,
    status: u16,
    content_type: &'static str,
    length: usize,
) -> Result<ResponseHeader> {
    let mut head = ResponseHeader::build(status, Some(6))?;
    head.insert_header(CONTENT_TYPE, HeaderValue::from_static(content_type))?;
    head.insert_header(CONTENT_LENGTH, length)?;
    if let Some(id) = &context.request_id {
        head.insert_header(REQUEST_ID, id.clone())?;
    }
    fields::change(&mut head, |fields| cors::tell(fields, context))?;
    Ok(head)
}

async fn write(session: &mut Session, head: ResponseHeader, body: Bytes) -> Result<()> {
    let unread = !session.is_body_done();
    let bodyless = session.req_header().method == Method::HEAD;
    let body = if bodyless { Bytes::new() } else { body };
    session.downstream_session.write_response_header(Box::new(head)).await?;
    session.downstream_session.write_response_body(body, true).await?;
    if unread && matches!(*session.downstream_session, ServerSession::H1(_)) {
        linger(&mut session.downstream_session).await;
    }
    Ok(())
}

/// Ends the sending side, then reads on for a while: closing at once would reset the connection under
/// the answer.
async fn linger(session: &mut ServerSession) {
    session.shutdown().await;
    let drained = async { while let Ok(Some(_)) = session.read_request_body().await {} };
    // Whoever still sends after that has been patient enough with.
    let _ = tokio::time::timeout(LINGER, drained).await;
}
