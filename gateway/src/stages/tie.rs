//! Ties a request to the one engine of several that has what it is about, as far as that is known, and
//! learns from answers which engine that is, and which model a stored response is of. Where a model has one
//! engine only, its endpoint has no name.

use std::net::SocketAddr;

use bytes::Bytes;
use flexinfer_core::openai::Understood;
use flexinfer_core::openai::apis::{self, Operation};
use flexinfer_core::rejection::Rejection;
use flexinfer_core::routing::{Asked, IdReader, Tie, client_id, previous_response};
use pingora_core::{Error, ErrorType};
use pingora_http::ResponseHeader;
use pingora_proxy::Session;

use super::aside;
use crate::context::{Body, Context, Retry, Stored};
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

impl Tied {
    /// Whether an id is looked for in the answer.
    pub(crate) fn is_read(&self) -> bool {
        self.reader.is_some()
    }
}

/// Wishes for the engine that has what the request is about.
pub(crate) async fn tie(
    parts: &Parts,
    session: &Session,
    context: &mut Context,
    operation: Option<&Operation>,
) -> Result<(), Rejection> {
    let Some((kind, asked)) =
        operation.and_then(|operation| operation.tied).zip(context.target.as_ref())
    else {
        return Ok(());
    };
    let client = client(session, context);
    let told = match &context.body {
        Some(body) => told(kind, body).await?,
        None => None,
    };
    let tie = Tie::of(
        kind,
        &Asked {
            model: &asked.served.effective.id,
            method: session.req_header().method.as_str(),
            path: &asked.path,
            told: told.as_deref(),
            client: &client,
        },
    );
    let mut pins = parts.remembered.engines.lock();
    let holder = tie.names.iter().find_map(|name| pins.holder(name));
    drop(pins);
    let wish = &mut context.attempt.wish;
    wish.key = tie.key.clone().or(wish.key.take());
    wish.holder = holder;
    let reader = tie.told_as.map(IdReader::new);
    let known = wish.holder.is_some();
    context.attempt.tied = Some(Box::new(Tied { tie, known, reader }));
    Ok(())
}

/// The id in a body that ties its request.
async fn told(kind: apis::Tie, body: &Body) -> Result<Option<String>, Rejection> {
    let received = &body.received;
    match (kind, &body.understood) {
        (apis::Tie::Response, Understood::Json(facts)) => Ok(previous_response(facts, received)),
        (apis::Tie::ComfyClient, _) if aside::is_long(received) => {
            let received = received.clone();
            aside::read(move || client_id(&received)).await
        }
        (apis::Tie::ComfyClient, _) => Ok(client_id(received)),
        _ => Ok(None),
    }
}

/// Whatever tells clients apart that send no id.
fn client(session: &Session, context: &Context) -> String {
    let address = session.client_addr().and_then(|address| address.as_inet()).map(SocketAddr::ip);
    let caller = context.ruled.caller.as_ref().map(|caller| &*caller.name).unwrap_or_default();
    address.map_or_else(|| caller.to_owned(), |address| format!("{caller}@{address}"))
}

/// An answer begins. If it says that the engine has not what the request is about, another is asked;
/// otherwise the engine is remembered.
pub(crate) fn here(
    parts: &Parts,
    head: &ResponseHeader,
    context: &mut Context,
) -> pingora_core::Result<()> {
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
        parts.remembered.engines.lock().pin(name, endpoint);
    }
    Ok(())
}

/// Learns from a piece of the answer the id by which later requests are tied to its engine.
pub(crate) fn learn(parts: &Parts, piece: Option<&Bytes>, context: &mut Context) {
    let Some((tied, piece)) = context.attempt.tied.as_mut().zip(piece) else { return };
    let Some(id) = tied.reader.as_mut().and_then(|reader| reader.look(piece)) else { return };
    let Some(target) = &context.target else { return };
    let model = &target.served.effective.id;
    let endpoint = context.attempt.booking.as_ref().and_then(|booking| booking.endpoint.clone());
    if let Some((name, endpoint)) = tied.tie.name_of(model, &id).zip(endpoint) {
        parts.remembered.engines.lock().pin(&name, endpoint);
    }
    if tied.tie.stores() {
        parts.remembered.made(&id, model, context.ruled.reserved);
        context.answer.stored = Some(Stored::Made(id));
    }
}
