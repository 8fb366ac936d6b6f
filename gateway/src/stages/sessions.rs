//! Charges a realtime session for what its engine tells of each answer, while it goes on, and ends it when its caller
//! has no tokens left: it may last for hours.

use std::time::{Duration, Instant};

use bytes::Bytes;
use flexinfer_core::limits::Limited;
use flexinfer_core::openai::frames::{Frames, Part};
use flexinfer_core::openai::{Dialect, SessionUsage, error_body, frames};
use flexinfer_core::rejection::Rejection;
use pingora_core::{Error, ErrorSource, ErrorType, Result};
use pingora_proxy::Session;
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::limit;
use crate::context::Context;
use crate::metrics::Outcome;
use crate::server::Line;

/// The code of a session's end that a rule of the server's asks for.
const POLICY: u16 = 1008;
/// How long a client that was told the end may take to end its side, too. To close at once could take the last words
/// from it.
const FAREWELL: Duration = Duration::from_secs(2);

/// A session that a limit counts.
#[derive(Debug, Default)]
pub(crate) struct Realtime {
    usage: SessionUsage,
    /// Where in its messages the client is.
    client: Frames,
    /// When the client was told that it ends.
    ended: Option<Instant>,
    /// Whether the client has ended its side, by the message for that or by the end of its connection alone.
    answered: bool,
}

impl Realtime {
    /// The tokens so far.
    pub(crate) fn tokens(&self) -> u64 {
        self.usage.tokens()
    }
}

/// Looks at what the engine says. Where nothing is left, the session ends behind the message that told so. What the
/// engine says after that is charged, and nobody hears it.
pub(crate) fn follow(
    session: &mut Session,
    piece: &mut Option<Bytes>,
    context: &mut Context,
) -> Result<()> {
    if !limit::switched(context) {
        return Ok(());
    }
    let Some((realtime, bytes)) = context.answer.session.as_mut().zip(piece.as_ref()) else {
        return Ok(());
    };
    let told = realtime.usage.look(bytes);
    if let Some(ended) = realtime.ended {
        // What was written before it is still on its way: an error would take that along.
        *piece = Some(Bytes::new());
        return if ended.elapsed() >= FAREWELL { over() } else { Ok(()) };
    }
    let Some(behind) = told else { return Ok(()) };
    let tokens = realtime.tokens();
    let charged = context.ruled.charged.as_mut();
    let Some(Err(limited)) = charged.map(|charged| charged.uses(tokens)) else { return Ok(()) };
    if let Some(target) = &context.target {
        target.series.rate_limited(limited.scope);
    }
    context.ruled.refused = Some(Outcome::RateLimited);
    realtime.ended = Some(Instant::now());
    // Whoever says nothing more does not keep it open either.
    session.set_read_timeout(Some(FAREWELL));
    let said = bytes.slice(..behind.min(bytes.len()));
    *piece = Some([said, end(limited)].concat().into());
    Ok(())
}

/// Keeps from the engine what a client says after it was told the end, and cuts it off when it has answered that or has
/// had its time. The end of its connection is an answer too, which the end of the handshake's empty body is not.
pub(crate) fn hear(piece: &mut Option<Bytes>, context: &mut Context) -> Result<()> {
    let switched = limit::switched(context);
    let Some(realtime) = &mut context.answer.session else { return Ok(()) };
    let Some(said) = piece else {
        realtime.answered |= switched;
        return Ok(());
    };
    let Realtime { client, answered, .. } = &mut **realtime;
    client.look(said, |part| *answered |= part == Part::Close);
    let Some(told) = realtime.ended else { return Ok(()) };
    if realtime.answered || told.elapsed() >= FAREWELL {
        return over();
    }
    *said = Bytes::new();
    Ok(())
}

/// How long a client that was told the end has yet to end its side, now that its session is over: its engine has hung up
/// before. Where it is over because of the client, that is gone.
pub(crate) fn left(context: &Context, broken_by: Option<&ErrorSource>) -> Option<Duration> {
    if broken_by == Some(&ErrorSource::Downstream) {
        return None;
    }
    let realtime = context.answer.session.as_ref().filter(|realtime| !realtime.answered)?;
    FAREWELL.checked_sub(realtime.ended?.elapsed())
}

/// Leaves the connection open for as long as that, unless the client goes: to close it while something of the client's
/// is unread resets it, which may take the end from the client. Nothing is held for it but the connection itself.
pub(crate) async fn linger(session: &mut Session, left: Duration) {
    session.downstream_session.shutdown().await;
    let line = Line::of(&session.downstream_session);
    // Whoever has not gone by then has had its time.
    let _ = timeout(left, line.hung_up()).await;
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
