//! Decides what a failure means: once more, elsewhere or over a new connection, or a final answer. Only
//! what the engine cannot have begun is tried again, and never after a byte went to the client.
//! That an engine says it is busy means that it has not begun.

mod protocol;

use std::time::{Duration, Instant};

use flexinfer_core::backends::Backend;
use flexinfer_core::ids::ModelId;
use flexinfer_core::rejection::Rejection;
use flexinfer_core::retrying;
use http::header::RETRY_AFTER;
use http::{HeaderName, HeaderValue, StatusCode};
use pingora_core::{BError, Error, ErrorSource, ErrorType, Result, RetryType};
use pingora_http::ResponseHeader;
use pingora_proxy::Session;

use super::{relay, send};
use crate::context::{Context, Retry};
use crate::parts::Parts;

/// The interim answers (1xx) that an engine may send before its answer, and how long they may be together.
const INTERIM: usize = 1000;
const INTERIM_BYTES: usize = 256 * 1024;

/// No connection was made: nothing was sent, so another try is safe, unless it replaces one by which something was.
/// That an engine speaks another protocol is no reason to doubt it, and none to try again.
#[expect(clippy::unnecessary_box_returns, reason = "Pingora hands its errors around in boxes")]
pub(crate) fn not_connected(
    parts: &Parts,
    session: &Session,
    context: &mut Context,
    mut error: BError,
) -> BError {
    context.spans.fail("connect");
    if let Some(protocol) = protocol::unagreed(session, context, &error) {
        reject(context, |model| Rejection::EngineProtocol { model, protocol });
        error.set_retry(false);
        return error;
    }
    if let Some(booking) = &context.attempt.booking {
        parts.adapters.forget_engine(booking.address);
    }
    let again = context.attempt.may_move(parts.limits.connections);
    if again {
        context.attempt.retry = Some(Retry::Elsewhere);
        count_retry(context, "connect");
    } else if context.attempt.replaced {
        // Whatever killed an engine at work may kill the next one too.
        reject(context, |model| Rejection::UpstreamBroke { model });
    } else {
        reject(context, |model| Rejection::UpstreamUnreachable { model });
    }
    error.set_retry(again);
    error
}

/// An answer begins. If it says that the engine is busy, the request waits instead of its client, for as
/// long as it may; after that the client reads the answer itself.
pub(crate) fn busy(parts: &Parts, head: &ResponseHeader, context: &mut Context) -> Result<()> {
    let status = head.status.as_u16();
    let Some(booking) = context.attempt.booking.as_ref().filter(|_| status >= 400) else {
        return Ok(());
    };
    if context.attempt.streams {
        return Ok(());
    }
    let backend = Backend::named(&booking.served.backend).unwrap_or(Backend::Command);
    let retry_after = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let (since, tries) = context.attempt.busy.unwrap_or((Instant::now(), 0));
    let pause = retrying::pause(status, retry_after, backend.busy_statuses(), tries);
    let Some(pause) = pause.filter(|pause| since.elapsed() + *pause < parts.limits.busy) else {
        return Ok(());
    };
    context.attempt.busy = Some((since, tries + 1));
    context.attempt.retry = Some(Retry::Later(pause));
    count_retry(context, "busy");
    Error::e_explain(ErrorType::Custom("EngineBusy"), "the engine is busy")
}

/// An answer that is announced for ever and never comes is given up: each of its interim answers would count as a
/// sign of life.
pub(crate) fn interim(head: &ResponseHeader, context: &mut Context) -> Result<()> {
    if !relay::is_interim(head.status) {
        return Ok(());
    }
    let interim = &mut context.attempt.interim;
    let length = |(name, value): (&HeaderName, &HeaderValue)| name.as_str().len() + value.len();
    interim.count += 1;
    interim.bytes += head.headers.iter().map(length).sum::<usize>();
    let problem = if interim.count > INTERIM {
        "more than 1000 interim answers (1xx) come before it"
    } else if interim.bytes > INTERIM_BYTES {
        "the interim answers (1xx) before it are longer than 256 KiB"
    } else {
        return Ok(());
    };
    reject(context, |model| Rejection::EngineAnswer { model, problem });
    Error::e_explain(ErrorType::Custom("EngineAnswer"), problem).map_err(Error::into_up)
}

/// An engine that answers as if it did not know an adapter that it once loaded has lost it: it has begun nothing, and
/// is asked again once it has the adapter. Once only: what it answers then is about something else.
pub(crate) fn without_adapter(
    parts: &Parts,
    head: &ResponseHeader,
    context: &mut Context,
) -> Result<()> {
    let attempt = &mut context.attempt;
    let Some(load) = attempt.loaded.filter(|_| head.status == StatusCode::NOT_FOUND) else {
        return Ok(());
    };
    if attempt.reloaded {
        return Ok(());
    }
    parts.adapters.forget(load);
    if attempt.streams {
        return Ok(());
    }
    attempt.reloaded = true;
    attempt.retry = Some(Retry::Adapter);
    count_retry(context, "adapter");
    Error::e_explain(ErrorType::Custom("AdapterLost"), "the engine has lost the adapter")
}

/// A connection broke. Where it was a kept one that the engine had closed before it read the request,
/// the request goes out again over a new one (ROUTE-02).
#[expect(clippy::unnecessary_box_returns, reason = "Pingora hands its errors around in boxes")]
pub(crate) fn broken(
    parts: &Parts,
    session: &mut Session,
    context: &mut Context,
    mut error: BError,
    kept: bool,
) -> BError {
    context.attempt.together = None;
    send::sent(session, context);
    context.spans.fail(error.etype().as_str());
    if context.attempt.rejection.is_some() {
        send::unwatch(session, context);
        if *error.esource() != ErrorSource::Upstream {
            // The rest of the body was refused on its way.
            error.as_down();
        }
        error.set_retry(false);
        return error;
    }
    if let Some(protocol) = protocol::unspoken(session, context, &error) {
        reject(context, |model| Rejection::EngineProtocol { model, protocol });
        error.as_up();
        error.set_retry(false);
        return error;
    }
    if send::unwatch(session, context) {
        let waited = patience(parts, context);
        reject(context, |model| Rejection::UpstreamTimeout { model, waited });
        error.as_up();
        error.set_retry(false);
        return error;
    }
    if matches!(context.attempt.retry, Some(Retry::Later(_) | Retry::NotHere | Retry::Adapter)) {
        not_begun(context);
        error.set_retry(true);
        return error;
    }
    let retry = once_more(parts, session, context, &error, kept);
    let again = retry.is_some();
    if again {
        if retry == Some(Retry::Elsewhere) {
            not_begun(context);
        }
        context.attempt.retry = retry;
        context.attempt.replaced |= retry == Some(Retry::NewConnection);
        count_retry(context, "reset");
    } else if *error.esource() == ErrorSource::Upstream {
        let silence = patience(parts, context);
        if matches!(error.etype(), ErrorType::ReadTimedout | ErrorType::WriteTimedout) {
            reject(context, |model| Rejection::UpstreamTimeout { model, waited: silence });
        } else {
            reject(context, |model| Rejection::UpstreamBroke { model });
        }
    }
    error.set_retry(again);
    error
}

/// Whoever leaves before another try has spent nothing.
fn not_begun(context: &mut Context) {
    if let Some(charged) = &mut context.ruled.charged {
        charged.unseen();
    }
}

/// How to try again what was under way when its connection broke.
fn once_more(
    parts: &Parts,
    session: &Session,
    context: &Context,
    error: &Error,
    kept: bool,
) -> Option<Retry> {
    let attempt = &context.attempt;
    let repeatable = !attempt.streamed
        && context.answer.status.is_none()
        && session.response_written().is_none_or(|head| relay::is_interim(head.status));
    if !repeatable {
        return None;
    }
    let stale = || attempt.connected.is_some_and(|since| since.elapsed() < parts.limits.stale);
    if kept && unread(error) && stale() {
        return Some(Retry::NewConnection);
    }
    (attempt.may_move(parts.limits.connections) && refused(error)).then_some(Retry::Elsewhere)
}

/// How long the engine may be silent, before its answer or within it.
fn patience(parts: &Parts, context: &Context) -> Duration {
    let answers = context.answer.status.is_some();
    if answers { parts.limits.silence } else { parts.limits.first_byte }
}

/// Whether the connection ended without a single byte of an answer, as one does that was closed before
/// the request came. Pingora says so only in the error's text; should that change, nothing is retried.
fn unread(error: &Error) -> bool {
    match error.etype() {
        ErrorType::WriteError => *error.esource() == ErrorSource::Upstream,
        ErrorType::ConnectionClosed | ErrorType::ReadError => error
            .context
            .as_ref()
            .is_some_and(|text| text.as_str().ends_with("bytes already read: 0")),
        _ => false,
    }
}

/// Whether an engine that speaks HTTP/2 has said that it did not begin: it refused the stream, or is closing
/// the connection and told which requests it still takes. Pingora finds that out.
fn refused(error: &Error) -> bool {
    *error.etype() == ErrorType::H2Error && matches!(error.retry, RetryType::Decided(true))
}

/// The answer to a failure that nothing answered yet; `None` when nobody is there to read it.
pub(crate) fn verdict(context: &mut Context, error: &Error) -> Option<Rejection> {
    if let Some(rejection) = context.attempt.rejection.take() {
        return Some(rejection);
    }
    match error.esource() {
        ErrorSource::Downstream => None,
        _ => Some(Rejection::Internal),
    }
}

fn reject(context: &mut Context, rejection: impl FnOnce(ModelId) -> Rejection) {
    if let Some(target) = &context.target {
        context.attempt.rejection = Some(rejection(target.served.effective.id.clone()));
    }
}

fn count_retry(context: &Context, reason: &'static str) {
    if let Some(target) = &context.target {
        target.series.retried(reason);
    }
}
