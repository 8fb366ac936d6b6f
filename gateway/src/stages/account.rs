//! The last stage: what a request leaves behind in the metrics and the log. Its slot goes back here, unless it has
//! before: its engine is done with it. What else it held goes back when its context is dropped, which is right after
//! but for a session whose client is still given time to read its end.

use std::time::Duration;

use flexinfer_core::openai::{Usage, UsageReader};
use pingora_core::{Error, ErrorSource};
use pingora_proxy::Session;
use tracing::debug;

use super::send;
use super::settle::{self, Ending};
use super::spans::Ended;
use crate::context::Context;
use crate::metrics::Outcome;
use crate::parts::Parts;

/// Counts and logs one request.
pub(crate) fn account(
    parts: &Parts,
    session: &mut Session,
    context: &mut Context,
    error: Option<&Error>,
) {
    context.attempt.together = None;
    send::sent(session, context);
    send::unwatch(session, context);
    let took = context.started.elapsed();
    let status = session.response_written().map(|head| head.status.as_u16());
    let ended = outcome(status, error.map(Error::esource));
    let outcome = context.ruled.refused.unwrap_or(ended);
    settle::settle(parts, context, Ending::Early);
    let usage = context.answer.usage.as_ref().map(UsageReader::usage);
    let usage = usage.filter(|usage| **usage != Usage::default());
    if let Some(target) = &context.target {
        target.series.finished(outcome, took, context.attempt.waited);
        if let Some((first, last)) = context.answer.pieces {
            // Of what broke off, or was left, nobody knows how many tokens were on their way.
            let tokens = usage.and_then(|usage| usage.completion_tokens);
            let tokens = tokens.filter(|_| outcome == Outcome::Success);
            target.series.streamed(first, last, tokens);
        }
        if let Some(usage) = usage {
            target.series.used(usage.prompt_tokens, usage.completion_tokens, target.stream);
        }
    }
    let model = context.target.as_ref().map(|target| target.served.name());
    let caller = context.ruled.caller.as_ref();
    let tenant = caller.and_then(|caller| caller.tenant.as_ref()).map(|tenant| &*tenant.name);
    let caller = caller.map(|caller| &*caller.name);
    debug!(
        target: "flexinfer::access",
        trace = context.spans.trace(),
        id = context.request_id.as_ref().and_then(|id| id.to_str().ok()),
        method = %session.req_header().method,
        path = session.req_header().uri.path(),
        caller,
        tenant,
        model,
        status,
        outcome = outcome.label(),
        code = context.answer.rejected,
        milliseconds = milliseconds(took),
        waited = context.attempt.waited.map(milliseconds),
        first_byte = context.answer.first_byte.map(milliseconds),
        connections = context.attempt.connections,
        sent = session.body_bytes_sent(),
        "request"
    );
    context.spans.end(&Ended {
        status,
        outcome: outcome.label(),
        rejected: context.answer.rejected,
        model,
        caller,
        first_byte: context.answer.first_byte,
        usage,
    });
    context.attempt.booking = None;
}

fn outcome(status: Option<u16>, broken_by: Option<&ErrorSource>) -> Outcome {
    match (status, broken_by) {
        (None, _) | (Some(..400), Some(ErrorSource::Downstream)) => Outcome::Cancelled,
        (Some(..400), None) => Outcome::Success,
        _ => Outcome::Error,
    }
}

/// To three places: a clock tells no more.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1000.0
}
