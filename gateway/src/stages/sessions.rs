//! Charges a realtime session for what its engine tells of each answer, while it goes on, and ends it when its caller
//! has no tokens left: it may last for hours.

use std::time::{Duration, Instant};

use bytes::Bytes;
use flexinfer_core::limits::Limited;
use flexinfer_core::openai::{Dialect, error_body, frames};
use flexinfer_core::rejection::Rejection;
use pingora_core::{Error, ErrorType, Result};
use pingora_proxy::Session;
use serde_json::{Map, Value};

use super::limit;
use crate::context::Context;
use crate::metrics::Outcome;

/// The code of a session's end that a rule of the server's asks for.
const POLICY: u16 = 1008;
/// How long a client that was told the end may take to end its side, too. To close at once could take the last words
/// from it.
const FAREWELL: Duration = Duration::from_secs(2);
/// The first byte of a client's own last words.
const CLOSE: u8 = 0x88;

/// Looks at what the engine says. Where nothing is left, the session ends behind the message that told so; what the
/// engine says after that is an error.
pub(crate) fn follow(
    session: &mut Session,
    piece: &mut Option<Bytes>,
    context: &mut Context,
) -> Result<()> {
    if !limit::switched(context) {
        return Ok(());
    }
    let Some((usage, bytes)) = context.answer.session.as_mut().zip(piece.as_ref()) else {
        return Ok(());
    };
    if context.answer.ended.is_some() {
        return over();
    }
    let Some(behind) = usage.look(bytes) else { return Ok(()) };
    let tokens = usage.tokens();
    let charged = context.ruled.charged.as_mut();
    let Some(Err(limited)) = charged.map(|charged| charged.uses(tokens)) else { return Ok(()) };
    if let Some(target) = &context.target {
        target.series.rate_limited(limited.scope);
    }
    context.ruled.refused = Some(Outcome::RateLimited);
    context.answer.ended = Some(Instant::now());
    // Whoever says nothing more does not keep it open either.
    session.set_read_timeout(Some(FAREWELL));
    let said = bytes.slice(..behind.min(bytes.len()));
    *piece = Some([said, end(limited)].concat().into());
    Ok(())
}

/// Keeps from the engine what a client says after it was told the end, and cuts it off when it has answered that or has
/// had its time.
pub(crate) fn hear(piece: &mut Option<Bytes>, context: &Context) -> Result<()> {
    let Some((told, said)) = context.answer.ended.zip(piece.as_mut()) else { return Ok(()) };
    if told.elapsed() >= FAREWELL || said.first() == Some(&CLOSE) {
        return over();
    }
    *said = Bytes::new();
    Ok(())
}

fn over() -> Result<()> {
    let over = ErrorType::Custom("SessionEnded");
    Error::e_explain(over, "its caller has no tokens left").map_err(Error::into_down)
}

/// An event that tells why, and the end.
fn end(limited: Limited) -> Bytes {
    let rejection = Rejection::from(limited);
    let body = error_body(Dialect::OpenAi, &rejection, None);
    let mut event: Map<String, Value> = serde_json::from_slice(&body).unwrap_or_default();
    event.insert("type".to_owned(), "error".into());
    let event = Value::Object(event).to_string();
    frames::last_words(event.as_bytes(), POLICY, rejection.code()).into()
}
