//! Decides what a failure means: once more, elsewhere or over a new connection, or a final answer. Only
//! what the engine cannot have begun is tried again, and never after a byte went to the client.

use flexinfer_core::ids::ModelId;
use flexinfer_core::rejection::Rejection;
use pingora_core::{BError, Error, ErrorSource, ErrorType};
use pingora_proxy::Session;

use super::send;
use crate::context::{Context, Retry};
use crate::parts::Parts;

/// No connection was made: nothing was sent, so another try is safe.
#[expect(clippy::unnecessary_box_returns, reason = "Pingora hands its errors around in boxes")]
pub(crate) fn not_connected(parts: &Parts, context: &mut Context, mut error: BError) -> BError {
    let again = context.attempt.connections < parts.limits.connections;
    if again {
        context.attempt.retry = Some(Retry::Elsewhere);
        count_retry(context, "connect");
    } else {
        reject(context, |model| Rejection::UpstreamUnreachable { model });
    }
    error.set_retry(again);
    error
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
    send::sent(session, context);
    let again = kept
        && context.attempt.connections <= parts.limits.connections
        && context.answer.status.is_none()
        && session.response_written().is_none_or(|head| head.status.is_informational())
        && unread(&error);
    if again {
        context.attempt.retry = Some(Retry::NewConnection);
        count_retry(context, "reset");
    } else if *error.esource() == ErrorSource::Upstream {
        let silence = parts.limits.silence;
        if matches!(error.etype(), ErrorType::ReadTimedout | ErrorType::WriteTimedout) {
            reject(context, |model| Rejection::UpstreamTimeout { model, waited: silence });
        } else {
            reject(context, |model| Rejection::UpstreamBroke { model });
        }
    }
    error.set_retry(again);
    error
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
