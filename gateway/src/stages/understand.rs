//! Understands a body: which model it names, what else it says, and what it has in common with other
//! requests that shall meet the same engine. Where its API has the model elsewhere, a body is between the
//! client and the engine.

use flexinfer_core::openai::apis::{ModelAt, Operation};
use flexinfer_core::openai::{BodyKind, Facts, Understood};
use flexinfer_core::rejection::Rejection;
use flexinfer_core::routing::{Key, KeyLengths, Said};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use pingora_proxy::Session;

use super::read::Arrived;
use super::{aside, receive};
use crate::context::{Body, Context};
use crate::parts::Parts;

/// What is in a body that was sent to `operation`.
pub(crate) async fn understand(
    session: &Session,
    context: &mut Context,
    operation: Option<&Operation>,
    arrived: &Arrived,
) -> Result<Understood, Rejection> {
    if let Some(rest) = &arrived.rest
        && operation.is_some()
    {
        return Ok(rest.understood());
    }
    if operation.is_some_and(|operation| operation.model_at == ModelAt::Address) {
        return Ok(Understood::Opaque);
    }
    let headers = &session.req_header().headers;
    if operation.is_none()
        && !arrived.received.is_empty()
        && let Err(coded) = receive::readable(headers)
    {
        // Whatever it looks like is not what the engine will read.
        context.ruled.unread = Some(Box::new(coded));
        return Ok(Understood::Opaque);
    }
    let content_type = headers.get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let understood = if let Some(rest) = &arrived.rest {
        Ok(rest.understood())
    } else if aside::is_long(&arrived.received) {
        let (content_type, body) = (content_type.map(str::to_owned), arrived.received.clone());
        aside::read(move || Understood::read(content_type.as_deref(), &body)).await.flatten()
    } else {
        Understood::read(content_type, &arrived.received)
    };
    if operation.is_some() {
        return understood;
    }
    // The model was named elsewhere and the path is in no table: what cannot be read is none of our business, but for
    // a limit that depends on it.
    let unread = match &understood {
        Ok(Understood::Json(_)) => None,
        _ if !may_be_object(&arrived.received) => None,
        // Engines that do not look at content types would read it.
        Ok(_) => BodyKind::expect(ModelAt::Json, content_type).err(),
        Err(rejection) => Some(rejection.clone()),
    };
    context.ruled.unread = unread.map(Box::new);
    Ok(understood.unwrap_or(Understood::Opaque))
}

/// Whether some reader may take `body` for a JSON object, in any coding of Unicode and with its mark.
fn may_be_object(body: &[u8]) -> bool {
    let before = |byte: &u8| {
        matches!(byte, 0 | b' ' | b'\t' | b'\r' | b'\n' | 0xEF | 0xBB | 0xBF | 0xFE | 0xFF)
    };
    body.iter().find(|byte| !before(byte)) == Some(&b'{')
}

/// Finds out what the request asks of the choice of its engine, by the strategy of its model.
pub(crate) async fn wish(
    parts: &Parts,
    session: &Session,
    context: &mut Context,
) -> Result<(), Rejection> {
    let Some(target) = &context.target else { return Ok(()) };
    let strategy = parts.routing.strategy_for(target.served.effective.routing);
    context.attempt.strategy = strategy;
    if strategy.is_keyed() {
        let body = context.body.as_ref();
        let found = key(session, body, parts.routing.lengths, move |said| strategy.key(said));
        context.attempt.wish.key = found.await?;
    }
    Ok(())
}

/// What `of` finds in head and body that keeps the request together with others.
pub(crate) async fn key(
    session: &Session,
    body: Option<&Body>,
    lengths: KeyLengths,
    of: impl FnOnce(&Said<'_>) -> Option<Key> + Send + 'static,
) -> Result<Option<Key>, Rejection> {
    let headers = &session.req_header().headers;
    let json = body.and_then(|Body { understood, received, .. }| match understood {
        Understood::Json(facts) => Some((facts, received)),
        Understood::Form(_) | Understood::Opaque => None,
    });
    match json {
        Some((facts, body)) if aside::is_long(body) => {
            let (headers, facts, body) = (headers.clone(), facts.clone(), body.clone());
            aside::read(move || key_in(&headers, Some((&facts, &body)), lengths, of)).await
        }
        json => Ok(key_in(headers, json.map(|(facts, body)| (facts, &**body)), lengths, of)),
    }
}

fn key_in(
    headers: &HeaderMap,
    json: Option<(&Facts, &[u8])>,
    lengths: KeyLengths,
    of: impl FnOnce(&Said<'_>) -> Option<Key>,
) -> Option<Key> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    of(&Said { header: &header, json, lengths })
}
