//! Ties a request to the one engine of several that has what it is about, as far as that is known, and
//! learns from answers which engine that is. Where a model has one engine only, its endpoint has no name
//! and nothing is done.

use std::net::SocketAddr;

use bytes::Bytes;
use flexinfer_core::openai::apis::Operation;
use flexinfer_core::routing::{Asked, IdReader, Tie};
use pingora_core::{Error, ErrorType, Result};
use pingora_http::ResponseHeader;
use pingora_proxy::Session;

use crate::context::{Context, Retry};
use crate::parts::Parts;

const NOT_FOUND: u16 = 404;

/// A request that is tied.
pub(crate) struct Tied {
    tie: Tie,
    /// Whether the engine that has it was known beforehand.
    known: bool,
    /// Looks through the answer for the id by which later requests are tied.
    reader: Option<IdReader>,
}

/// Wishes for the engine that has what the request is about.
pub(crate) fn tie(
    parts: &Parts,
    session: &Session,
    context: &mut Context,
    operation: Option<&Operation>,
) {
    let Some((kind, asked)) =
        operation.and_then(|operation| operation.tied).zip(context.target.as_ref())
    else {
        return;
    };
    let client = client(session, context);
    let body = context.body.as_ref().map(|body| body.received.clone()).unwrap_or_default();
    let tie = Tie::of(
        kind,
        &Asked {
            model: &asked.served.effective.id,
            method: session.req_header().method.as_str(),
            path: &asked.path,
            body: &body,
            client: &client,
        },
    );
    let mut pins = parts.pins.lock();
    let holder = tie.names.iter().find_map(|name| pins.holder(name));
    drop(pins);
    let wish = &mut context.attempt.wish;
    wish.key = tie.key.clone().or(wish.key.take());
    wish.holder = holder;
    let reader = tie.told_as.map(IdReader::new);
    let known = wish.holder.is_some();
    context.attempt.tied = Some(Box::new(Tied { tie, known, reader }));
}

/// Whatever tells clients apart that send no id.
fn client(session: &Session, context: &Context) -> String {
    let address = session.client_addr().and_then(|address| address.as_inet()).map(SocketAddr::ip);
    let caller = context.ruled.caller.as_ref().map(|caller| &*caller.name).unwrap_or_default();
    address.map_or_else(|| caller.to_owned(), |address| format!("{caller}@{address}"))
}

/// An answer begins. If it says that the engine has not what the request is about, another is asked;
/// otherwise the engine is remembered.
pub(crate) fn here(parts: &Parts, head: &ResponseHeader, context: &mut Context) -> Result<()> {
    let attempt = &mut context.attempt;
    let Some(tied) = &attempt.tied else { return Ok(()) };
    let endpoint = attempt.booking.as_ref().and_then(|booking| booking.endpoint.clone());
    let Some(endpoint) = endpoint else { return Ok(()) };
    let tie = &tied.tie;
    if head.status.as_u16() == NOT_FOUND && tie.ask_around {
        if tied.known || attempt.wish.avoid.contains(&endpoint) {
            return Ok(());
        }
        attempt.retry = Some(Retry::NotHere);
        return Error::e_explain(ErrorType::Custom("NotHere"), "another engine may have it");
    }
    let names = if tie.ask_around { tie.names.first() } else { tie.leaves.as_ref() };
    if let Some(name) = names.filter(|_| head.status.is_success() || head.status == 101) {
        parts.pins.lock().pin(name, endpoint);
    }
    Ok(())
}

/// Learns from a piece of the answer the id by which later requests are tied to its engine.
pub(crate) fn learn(parts: &Parts, piece: Option<&Bytes>, context: &mut Context) {
    let Some((tied, piece)) = context.attempt.tied.as_mut().zip(piece) else { return };
    let Some(id) = tied.reader.as_mut().and_then(|reader| reader.look(piece)) else { return };
    let endpoint = context.attempt.booking.as_ref().and_then(|booking| booking.endpoint.clone());
    let Some((target, endpoint)) = context.target.as_ref().zip(endpoint) else { return };
    if let Some(name) = tied.tie.name_of(&target.served.effective.id, &id) {
        parts.pins.lock().pin(&name, endpoint);
    }
}
