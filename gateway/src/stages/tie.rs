//! Ties a request to the one engine of several that has what it is about, as far as that is known, and
//! learns from answers which engine that is, and which model a stored response is of. Where a model has one
//! engine only, its endpoint has no name.

use std::net::SocketAddr;
use std::time::Instant;

use bytes::Bytes;
use flexinfer_core::backends::Backend;
use flexinfer_core::ids::EndpointId;
use flexinfer_core::openai::Understood;
use flexinfer_core::openai::apis::{self, Operation};
use flexinfer_core::rejection::Rejection;
use flexinfer_core::routing::{
    Absence, Asked, BodyReader, ClientNumber, IdReader, KnownBy, Mark, Only, Presence,
    StringsReader, Tie, client_id, picture, previous_response, shows_file,
};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use pingora_core::{Error, ErrorType};
use pingora_http::ResponseHeader;
use pingora_proxy::Session;

use super::{aside, marks, only, read, receive};
use crate::context::{Body, Context, Retry, Stored, Target};
use crate::parts::Parts;
use crate::replay::Whose;

/// A request that is tied.
pub(crate) struct Tied {
    tie: Tie,
    /// The engine that has it, where that was known beforehand.
    holder: Option<EndpointId>,
    /// Looks through the answer for the id by which later requests are tied.
    reader: Option<IdReader>,
    /// Looks through it for pictures that its client may ask for.
    pictures: Option<StringsReader>,
    /// Looks at its body where only that says whether the engine has what was asked for.
    body: Option<BodyReader>,
    /// Whose share of what is remembered its pictures and who queued its job take from.
    owner: String,
    /// The mark that its client came with.
    mark: Option<Mark>,
    /// Who its client is from now on, where it came without one.
    client: ClientNumber,
}

impl Tied {
    /// Whether something is looked for in the answer.
    pub(crate) fn is_read(&self) -> bool {
        self.reader.is_some() || self.pictures.is_some()
    }
}

/// Wishes for the engine that has what the request is about.
pub(crate) async fn tie(
    parts: &Parts,
    session: &Session,
    context: &mut Context,
    operation: Option<&Operation>,
) -> Result<(), Rejection> {
    let Some(target) = &context.target else { return Ok(()) };
    let model = &target.served.effective.id;
    let (kind, marked) = match operation.map(|operation| operation.tied) {
        Some(None) => return Ok(()),
        Some(Some(kind @ apis::Tie::Response)) => (kind, None),
        Some(Some(kind @ apis::Tie::ComfyClient)) => {
            (kind, marks::brought(parts, session, context, model))
        }
        // Pages and what else is in no table meet the engine of their client as well; files are nobody else's.
        None => match marks::brought(parts, session, context, model) {
            None if !shows_comfyuis_file(session, target) => return Ok(()),
            marked => (apis::Tie::ComfyClient, marked),
        },
    };
    let (mark, marked) = marked.map(|marked| (marked.mark, marked.engine)).unzip();
    let client = client(session, context);
    let told = match &context.body {
        Some(body) if mark.is_none() => told(kind, body).await?,
        _ => None,
    };
    let asked = Asked {
        model,
        method: session.req_header().method.as_str(),
        path: &target.path,
        told: told.as_deref(),
        client: &client,
        listed: operation.is_some(),
        mark: mark.as_ref(),
    };
    let mut tie = Tie::of(kind, &asked);
    let client = marks::new_client();
    if tie.marks && mark.is_none() {
        tie.mark(model, client);
    }
    if let Some(Only { known_by: KnownBy::Job(job), .. }) = &tie.only {
        tie.told_to.extend(parts.remembered.who_queued(job));
    }
    let marked = marked.flatten();
    let holder = match &tie.only {
        Some(only) => only::holder(parts, target, only, marked)?,
        None => marked.or_else(|| {
            let mut pins = parts.remembered.engines.lock();
            tie.names.iter().find_map(|name| pins.holder(name))
        }),
    };
    let wish = &mut context.attempt.wish;
    wish.key = tie.key.clone().or(wish.key.take());
    wish.holder.clone_from(&holder);
    wish.insists = tie.only.as_ref().map(|only| only.what.clone());
    let (reader, pictures) = (tie.told_as.map(IdReader::new), tie.tells.map(StringsReader::new));
    let owned = tie.tells.is_some() || tie.queued_by.is_some();
    let owner = if owned { owner(session, context) } else { String::new() };
    let tied = Tied { tie, holder, reader, pictures, body: None, owner, mark, client };
    context.attempt.tied = Some(Box::new(tied));
    Ok(())
}

/// Whether a file of ComfyUI's is asked for at a path that no table has.
fn shows_comfyuis_file(session: &Session, target: &Target) -> bool {
    let method = session.req_header().method.as_str();
    Backend::named(&target.served.backend) == Some(Backend::ComfyUi)
        && shows_file(method, &target.path, false)
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

/// Whose share of what is remembered a request takes from.
fn owner(session: &Session, context: &Context) -> String {
    match read::whose(session, context) {
        Some(Whose::Caller(name)) => name.to_string(),
        Some(Whose::Peer(network)) => network.to_string(),
        None => String::new(),
    }
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
    let presence = tie.ask_around.map(|absence| presence(absence, head));
    if presence == Some(Presence::Absent) {
        if tied.holder.is_some() || attempt.wish.avoid.contains(&endpoint) {
            return Ok(());
        }
        let model = context.target.as_ref().map(|target| &target.served.effective.id);
        let engines = model.and_then(|model| parts.dispatch.engines(model));
        let asked =
            |engine: &EndpointId| *engine == endpoint || attempt.wish.avoid.contains(engine);
        if engines.is_some_and(|engines| engines.iter().all(asked)) {
            return Ok(());
        }
        attempt.retry = Some(Retry::NotHere);
        return Error::e_explain(ErrorType::Custom("NotHere"), "another engine may have it");
    }
    if !is_success(head) {
        return Ok(());
    }
    if let Some(Only { known_by: KnownBy::Told(picture), .. }) = &tie.only {
        parts.remembered.pictures.shown(picture, &endpoint);
    }
    let own = tie.names.first().filter(|_| presence == Some(Presence::Here));
    let mut pins = parts.remembered.engines.lock();
    for name in own.into_iter().chain(&tie.leaves) {
        pins.pin(name, endpoint.clone());
    }
    if let Some(tied) = &mut attempt.tied {
        let readable = presence == Some(Presence::Untold) && !is_coded(head);
        tied.body = readable.then(BodyReader::default);
    }
    Ok(())
}

/// What an answer's head says of whether its engine has what it was asked for. How long it is says nothing where it
/// is compressed.
fn presence(absence: Absence, head: &ResponseHeader) -> Presence {
    let length = receive::announced_length(&head.headers).filter(|_| !is_coded(head));
    absence.presence(head.status.as_u16(), length)
}

fn is_coded(head: &ResponseHeader) -> bool {
    head.headers.contains_key(CONTENT_ENCODING)
}

fn is_success(head: &ResponseHeader) -> bool {
    head.status.is_success() || head.status == 101
}

/// Gives the client of an answer that succeeds what it is to come back with, unless it has that: a browser has it with
/// ComfyUI's page.
pub(crate) fn mark_client(fields: &mut HeaderMap, succeeds: bool, context: &Context) {
    let tied = context.attempt.tied.as_deref();
    if !succeeds || !tied.map_or_else(|| is_page(fields, context), |tied| tied.tie.marks) {
        return;
    }
    let prefix = context.target.as_ref().and_then(|target| target.prefix.as_deref());
    let booking = context.attempt.booking.as_ref();
    let engine = booking.and_then(|booking| booking.endpoint.as_ref());
    let Some((engine, prefix)) = engine.zip(prefix) else { return };
    let given = if let Some(brought) = tied.and_then(|tied| tied.mark) {
        brought.moved_to(engine)
    } else {
        let client = tied.map_or_else(marks::new_client, |tied| tied.client);
        Some(Mark::new(engine, client))
    };
    if let Some(given) = given {
        marks::give(fields, given, prefix);
    }
}

/// Whether a page of ComfyUI's is answered with.
fn is_page(fields: &HeaderMap, context: &Context) -> bool {
    let html =
        fields.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    let backend = context.target.as_ref().map(|target| &target.served.backend);
    html && backend.is_some_and(|backend| Backend::named(backend) == Some(Backend::ComfyUi))
}

/// Learns from a piece of the answer by what later requests are tied to its engine.
pub(crate) fn learn(parts: &Parts, piece: Option<&Bytes>, context: &mut Context) {
    let Some((tied, piece)) = context.attempt.tied.as_mut().zip(piece) else { return };
    let pictures = tied.pictures.as_mut().map(|pictures| pictures.look(piece)).unwrap_or_default();
    let id = tied.reader.as_mut().and_then(|reader| reader.look(piece));
    let Some(target) = &context.target else { return };
    let model = &target.served.effective.id;
    if let Some(id) = id.as_ref().filter(|_| tied.tie.stores()) {
        parts.remembered.made(id, model, context.ruled.reserved);
        context.answer.stored = Some(Stored::Made(id.clone()));
    }
    let booking = context.attempt.booking.as_ref();
    let Some(endpoint) = booking.and_then(|booking| booking.endpoint.clone()) else { return };
    if tied.body.as_mut().is_some_and(|body| body.look(piece))
        && let Some(name) = tied.tie.names.first()
    {
        parts.remembered.engines.lock().pin(name, endpoint.clone());
    }
    for file in pictures {
        for client in &tied.tie.told_to {
            let picture = picture(model, client, &file);
            parts.remembered.pictures.told(&tied.owner, &picture, &endpoint, Instant::now());
        }
    }
    if let Some(name) = id.and_then(|id| tied.tie.name_of(model, &id)) {
        if let Some(client) = &tied.tie.queued_by {
            parts.remembered.queued_by(&tied.owner, &name, client);
        }
        parts.remembered.engines.lock().pin(&name, endpoint);
    }
}
