//! Waits for a slot on an engine, and stops waiting when the client leaves.
//!
//! Must run after the body was read, to its end or as far as it may be. At its end, watching an HTTP/1 client means reading on, and what
//! comes then is the next request or the end of the connection. A client that closes its sending side
//! counts as gone (SSE-07): nearly all that do have left, and an engine's time is dear.

use std::task::Poll;
use std::time::Instant;

use flexinfer_core::rejection::Rejection;
use futures::future::BoxFuture;
use futures::poll;
use pingora_proxy::Session;

use super::Stop;
use crate::context::Context;
use crate::queues::Booking;
use crate::server::Line;

/// A slot as the future that is waited for.
pub(crate) type Slot = BoxFuture<'static, Result<Booking, Rejection>>;

/// Waits for `booking` and puts it into the context.
pub(crate) async fn dispatch(
    session: &mut Session,
    context: &mut Context,
    mut booking: Slot,
) -> Result<(), Stop> {
    // Mostly a slot is free: then there is no wait to be measured, and no client to be watched.
    let booked = match poll!(&mut booking) {
        Poll::Ready(booked) => booked,
        Poll::Pending => {
            if let Some(target) = &context.target {
                target.series.queued();
            }
            wait(session, context, booking).await?
        }
    };
    context.attempt.waited.get_or_insert_default();
    let Some(target) = &context.target else { return Err(Rejection::Internal.into()) };
    if matches!(booked, Err(Rejection::QueueFull { .. })) {
        target.series.refused();
    }
    let booking = booked?;
    let attempt = &mut context.attempt;
    let endpoint = booking.endpoint.as_ref();
    target.series.routed(attempt.strategy, attempt.wish.key.as_ref(), endpoint);
    attempt.booking = Some(booking);
    Ok(())
}

/// Waits for what stands between the request and its engine, for as long as its client does.
pub(crate) async fn wait<T>(
    session: &mut Session,
    context: &mut Context,
    awaited: impl Future<Output = T>,
) -> Result<T, Stop> {
    let _told = context.spans.wait();
    let unread = context.body.as_ref().is_some_and(|body| body.rest.is_some());
    let begun = Instant::now();
    let came = tokio::select! {
        biased;
        came = awaited => came,
        () = gone(session, unread) => return Err(Stop::ClientLeft),
    };
    *context.attempt.waited.get_or_insert_default() += begun.elapsed();
    Ok(came)
}

/// Resolves when the client is gone, some of whose body may be unread.
async fn gone(session: &mut Session, unread: bool) {
    let line = Line::of(&session.downstream_session);
    if unread {
        match session.downstream_session.watch_h2_stream_close() {
            Some(closed) => drop(closed.await),
            None => line.hung_up().await,
        }
        return;
    }
    tokio::select! {
        // With the body at its end this only ever ends with an error, which means gone.
        _ = session.downstream_session.read_body_or_idle(true) => {}
        // Once the next request has begun to come, nothing is read any more.
        () = line.hung_up() => {}
    }
}
