//! Charges a realtime session for what its engine tells of each answer, while it goes on, and ends it when its caller
//! has no tokens left: it may last for hours.

use bytes::Bytes;
use flexinfer_core::limits::Limited;
use flexinfer_core::openai::{Dialect, error_body, frames};
use flexinfer_core::rejection::Rejection;
use pingora_core::{Error, ErrorType, Result};
use serde_json::{Map, Value};

use super::limit;
use crate::context::Context;
use crate::metrics::Outcome;

/// The code of a session's end that a rule of the server's asks for.
const POLICY: u16 = 1008;

/// Looks at what the engine says. Where nothing is left, the session ends behind the message that told so; what the
/// engine says after that is an error.
pub(crate) fn follow(piece: &mut Option<Bytes>, context: &mut Context) -> Result<()> {
    if !limit::switched(context) {
        return Ok(());
    }
    let Some((session, bytes)) = context.answer.session.as_mut().zip(piece.as_ref()) else {
        return Ok(());
    };
    if context.ruled.refused.is_some() {
        return Error::e_explain(
            ErrorType::Custom("SessionEnded"),
            "its caller has no tokens left",
        )
        .map_err(Error::into_down);
    }
    let Some(behind) = session.look(bytes) else { return Ok(()) };
    let tokens = session.tokens();
    let charged = context.ruled.charged.as_mut();
    let Some(Err(limited)) = charged.map(|charged| charged.uses(tokens)) else { return Ok(()) };
    if let Some(target) = &context.target {
        target.series.rate_limited(limited.scope);
    }
    context.ruled.refused = Some(Outcome::RateLimited);
    let said = bytes.slice(..behind.min(bytes.len()));
    *piece = Some([said, end(limited)].concat().into());
    Ok(())
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
