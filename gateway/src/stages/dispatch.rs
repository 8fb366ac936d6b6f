//! Waits for a slot on an engine, and stops waiting when the client leaves.
//!
//! Must run after the body was read, to its end or as far as it may be. At its end, watching an HTTP/1 client means reading on, and what
//! comes then is the next request or the end of the connection. A client that closes its sending side
//! counts as gone (SSE-07): nearly all that do have left, and an engine's time is dear.

use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use flexinfer_core::rejection::Rejection;
use futures::future::BoxFuture;
use futures::poll;
use pingora_proxy::Session;

use super::Stop;
use crate::context::Context;
use crate::parts::Parts;
use crate::queues::Booking;
use crate::server::Line;

/// A slot as the future that is waited for.
pub(crate) type Slot = BoxFuture<'static, Result<Booking, Rejection>>;

/// The slot, once its engine has the adapter that is asked for, where that is loaded at its first request.
pub(crate) fn with_adapter(parts: &Parts, context: &Context, booking: Slot) -> Slot {
    let adapter = context.target.as_ref().and_then(|target| target.adapter.as_ref());
    let Some(adapter) = adapter.filter(|adapter| adapter.on_demand.is_some()) else {
        return booking;
    };
    let (adapters, adapter) = (Arc::clone(&parts.adapters), Arc::clone(adapter));
    Box::pin(async move {
        let booking = booking.await?;
        adapters.ensure(&booking, &adapter).await?;
        Ok(booking)
    })
}

/// Waits for `booking` and puts it into the context.
pub(crate) async fn dispatch(
    session: &mut Session,
    context: &mut Context,
    mut booking: Slot,
) -> Result<(), Stop> {
    // Mostly a slot is free: then there is no wait to be measured, and no client to be watched.
    let booked = match poll!(&mut booking) {
        Poll::Ready(booked) => booked,
        Poll::Pending => wait(session, context, booking).await?,
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

async fn wait(
    session: &mut Session,
    context: &mut Context,
    booking: Slot,
) -> Result<Result<Booking, Rejection>, Stop> {
    if let Some(target) = &context.target {
        target.series.queued();
    }
    let _told = context.spans.wait();
    let unread = context.body.as_ref().is_some_and(|body| body.rest.is_some());
    let begun = Instant::now();
    let booked = tokio::select! {
        biased;
        booked = booking => booked,
        () = gone(session, unread) => return Err(Stop::ClientLeft),
    };
    *context.attempt.waited.get_or_insert_default() += begun.elapsed();
    Ok(booked)
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
