//! Turns the booked slot into the address to connect to; after a failed try asks for another slot.

use std::sync::atomic::{AtomicU64, Ordering};

use flexinfer_core::rejection::Rejection;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_proxy::Session;

use super::{Stop, dispatch};
use crate::context::{Context, Retry};
use crate::parts::Parts;

/// Where to send the request now.
pub(crate) async fn connect(
    parts: &Parts,
    session: &mut Session,
    context: &mut Context,
) -> Result<Box<HttpPeer>, Stop> {
    let retry = context.attempt.retry.take();
    if retry == Some(Retry::Elsewhere)
        && let Some(failed) = context.attempt.booking.take()
    {
        let another = parts.dispatch.rebook(failed);
        dispatch::dispatch(session, context, another).await?;
    }
    context.attempt.connections += 1;
    let Some(booking) = &context.attempt.booking else {
        return Err(Rejection::Internal.into());
    };
    let mut peer = Box::new(HttpPeer::new(booking.address, false, String::new()));
    peer.options.connection_timeout = Some(parts.limits.connect);
    peer.options.total_connection_timeout = Some(parts.limits.connect);
    peer.options.read_timeout = Some(parts.limits.silence);
    peer.options.write_timeout = Some(parts.limits.silence);
    peer.options.idle_timeout = Some(parts.limits.pooled);
    if retry == Some(Retry::NewConnection) {
        peer.group_key = unshared();
    }
    Ok(peer)
}

/// A pool of its own: no kept connection is found in it.
fn unshared() -> u64 {
    static USED: AtomicU64 = AtomicU64::new(1);
    USED.fetch_add(1, Ordering::Relaxed)
}
