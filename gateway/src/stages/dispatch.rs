//! Waits for a slot on an engine, and stops waiting when the client leaves.
//!
//! Must run after the body was read to its end: watching an HTTP/1 client means reading on, and what
//! comes then is the next request or the end of the connection. A client that closes its sending side
//! counts as gone (SSE-07): nearly all that do have left, and an engine's time is dear.

use std::time::Instant;

use flexinfer_core::rejection::Rejection;
use futures::future::BoxFuture;
use pingora_proxy::Session;

use super::Stop;
use crate::context::Context;
use crate::queues::Booking;

/// Waits for `booking` and puts it into the context.
pub(crate) async fn dispatch(
    session: &mut Session,
    context: &mut Context,
    booking: BoxFuture<'static, Result<Booking, Rejection>>,
) -> Result<(), Stop> {
    let begun = Instant::now();
    let series = context.target.as_ref().map(|target| target.series.clone());
    let leaving = async {
        // Not looked at where a slot is free at once: nobody waits then.
        if let Some(series) = &series {
            series.queued();
        }
        gone(session).await;
    };
    let booking = tokio::select! {
        biased;
        booking = booking => booking,
        () = leaving => return Err(Stop::ClientLeft),
    };
    context.attempt.waited = Some(context.attempt.waited.unwrap_or_default() + begun.elapsed());
    if let (Err(Rejection::QueueFull { .. }), Some(series)) = (&booking, &series) {
        series.refused();
    }
    let booking = booking?;
    if let Some(series) = &series {
        let attempt = &context.attempt;
        let endpoint = booking.endpoint.as_ref();
        series.routed(attempt.strategy, attempt.wish.key.as_ref(), endpoint);
    }
    context.attempt.booking = Some(booking);
    Ok(())
}

/// Resolves when the client is gone.
async fn gone(session: &mut Session) {
    // With the body at its end this only ever ends with an error, which means gone.
    let _ = session.downstream_session.read_body_or_idle(true).await;
}
