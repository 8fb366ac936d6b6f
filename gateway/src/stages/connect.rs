//! Turns the booked slot into the address to connect to; after a failed try asks for another slot.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flexinfer_core::effective::EngineProtocol;
use flexinfer_core::rejection::Rejection;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_proxy::Session;

use super::dispatch::Slot;
use super::{Stop, adapt, dispatch};
use crate::context::{Context, Retry};
use crate::parts::Parts;
use crate::server;
use crate::way::Way;

/// Requests that share a connection of HTTP/2, if the engine does not want fewer.
const STREAMS: usize = 100;

/// Where to send the request now.
pub(crate) async fn connect(
    parts: &Parts,
    session: &mut Session,
    context: &mut Context,
) -> Result<Box<HttpPeer>, Stop> {
    let retry = context.attempt.retry.take();
    if let Some(retry) = retry {
        if let Some(another) = another_slot(parts, context, retry) {
            dispatch::dispatch(session, context, another).await?;
        }
        adapt::adapt(parts, session, context).await?;
    }
    // That a kept connection had been closed says nothing of the engine: the new one is the same try.
    if retry != Some(Retry::NewConnection) {
        context.attempt.connections += 1;
    }
    let Some(booking) = &context.attempt.booking else {
        return Err(Rejection::Internal.into());
    };
    context.spans.go_to(booking.address, context.attempt.connections);
    let way = Way::to(booking.address, &booking.served.effective, &parts.rules.secrets);
    let websocket = session.downstream_session.is_upgrade_req();
    context.attempt.websocket = websocket;
    let mut peer = Box::new(peer(&way, websocket));
    peer.options.connection_timeout = Some(parts.limits.connect);
    peer.options.total_connection_timeout = Some(parts.limits.connect);
    // Pingora has one limit for both; the shorter one is watched by `Watch`. A WebSocket may be silent, and until it
    // is one, `Watch` has both.
    let patience = parts.limits.silence.max(parts.limits.first_byte);
    peer.options.read_timeout = (!websocket).then_some(patience);
    peer.options.write_timeout = Some(parts.limits.silence);
    peer.options.idle_timeout = Some(parts.limits.pooled);
    peer.options.tcp_keepalive = Some(server::ALIVE);
    let streams = context.body.as_ref().is_some_and(|body| body.rest.is_some());
    if streams {
        // The engine may be silent for as long as the client sends.
        peer.options.read_timeout = Some(patience + parts.limits.body_deadline);
    }
    // What can be sent only once is not sent on a connection that may have been closed.
    if streams || retry == Some(Retry::NewConnection) {
        peer.group_key = unshared();
    }
    Ok(peer)
}

/// The way as Pingora goes it, for a WebSocket if `websocket`.
fn peer(way: &Way<'_>, websocket: bool) -> HttpPeer {
    let name = way.spoken.tls_name.clone();
    let secured = name.is_some();
    let mut peer = HttpPeer::new(way.address, secured, name.unwrap_or_default());
    if secured {
        peer.options.ca = Some(way.trust().authorities().0);
    }
    let (most, least) = versions(way.spoken.protocol, websocket);
    peer.options.set_http_version(most, least);
    if most == 2 {
        peer.options.max_h2_streams = STREAMS;
    }
    peer
}

/// The highest and the lowest version of HTTP that a request may go by. HTTP/2 has another way for WebSockets,
/// which hardly any engine knows: they go by HTTP/1.1.
fn versions(protocol: EngineProtocol, websocket: bool) -> (u8, u8) {
    match protocol {
        EngineProtocol::H2c | EngineProtocol::H2 if !websocket => (2, 2),
        EngineProtocol::Alpn if !websocket => (2, 1),
        _ => (1, 1),
    }
}

/// There is a connection. A body that was read whole follows its head at once: they leave together. One of
/// HTTP/2 is not this request's alone.
///
/// A handshake leaves at the end of the turn too, by when Pingora has noted that it has no body: were it answered
/// before that, Pingora would take the note for the end of what it became.
pub(crate) fn connected(engine: RawFd, session: &Session, context: &mut Context) {
    context.attempt.together = None;
    context.attempt.connected = Some(Instant::now());
    let booking = context.attempt.booking.as_ref();
    let handshake = session.downstream_session.is_upgrade_req();
    let http1 = booking
        .is_some_and(|booking| booking.served.effective.spoken.protocol == EngineProtocol::Http1);
    let whole = context.body.as_ref().is_some_and(|body| body.rest.is_none());
    let held = handshake || http1 && whole;
    context.attempt.together = held.then(|| server::hold(engine)).flatten();
}

/// The slot to try next, where it is another one than the last.
pub(crate) fn another_slot(parts: &Parts, context: &mut Context, retry: Retry) -> Option<Slot> {
    if matches!(retry, Retry::NewConnection | Retry::Adapter) {
        return None;
    }
    let attempt = &mut context.attempt;
    let failed = attempt.booking.take()?;
    let known = failed.endpoint.as_ref().is_none_or(|id| attempt.wish.avoid.contains(id));
    attempt.wish.avoid.extend(failed.endpoint.clone());
    let pause = match retry {
        Retry::Elsewhere | Retry::NewConnection | Retry::Adapter => {
            return Some(parts.dispatch.rebook(failed, attempt.wish.clone()));
        }
        // Another engine may be free. Only when the choice came back to one that was busy before is
        // there nothing better than to wait.
        Retry::Later(pause) if known => {
            attempt.wish.avoid.clear();
            pause
        }
        Retry::Later(_) | Retry::NotHere => Duration::ZERO,
    };
    // This engine has been reached: what counts against unreachable ones begins anew.
    attempt.connections = 0;
    attempt.replaced = false;
    let (dispatch, wish) = (Arc::clone(&parts.dispatch), attempt.wish.clone());
    Some(Box::pin(async move {
        let served = Arc::clone(&failed.served);
        drop(failed);
        tokio::time::sleep(pause).await;
        dispatch.book(served, wish).await
    }))
}

/// A pool of its own: no kept connection is found in it.
fn unshared() -> u64 {
    static USED: AtomicU64 = AtomicU64::new(1);
    USED.fetch_add(1, Ordering::Relaxed)
}
