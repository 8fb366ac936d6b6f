//! Understands a body: which model it names, what else it says, and what it has in common with other
//! requests that shall meet the same engine. Where its API has the model elsewhere, a body is between the
//! client and the engine.

use bytes::Bytes;
use flexinfer_core::openai::Understood;
use flexinfer_core::openai::apis::{ModelAt, Operation};
use flexinfer_core::rejection::Rejection;
use flexinfer_core::routing::Said;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use pingora_proxy::Session;
use tokio::task::spawn_blocking;

use super::read::Arrived;
use crate::context::{Body, Context};
use crate::parts::Parts;

/// A longer body takes a moment to read, in bytes.
const LONG: usize = 1024 * 1024;

/// What is in a body that was sent to `operation`.
pub(crate) async fn understand(
    operation: Option<&Operation>,
    headers: &HeaderMap,
    arrived: &Arrived,
) -> Result<Understood, Rejection> {
    if let Some(rest) = &arrived.rest {
        return Ok(rest.understood());
    }
    if operation.is_some_and(|operation| operation.model_at == ModelAt::Address) {
        return Ok(Understood::Opaque);
    }
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let understood = if arrived.received.len() > LONG {
        aside(content_type.map(str::to_owned), arrived.received.clone()).await
    } else {
        Understood::read(content_type, &arrived.received)
    };
    if operation.is_some() {
        return understood;
    }
    // The model was named elsewhere and the path is in no table: what cannot be read, or names no model,
    // is none of our business.
    let named = understood.ok().filter(|body| body.model().is_some());
    Ok(named.unwrap_or(Understood::Opaque))
}

/// Reads a long body on a thread of its own: meanwhile the lane serves its other connections.
async fn aside(content_type: Option<String>, body: Bytes) -> Result<Understood, Rejection> {
    let reading = move || Understood::read(content_type.as_deref(), &body);
    // It fails only while the gateway ends.
    spawn_blocking(reading).await.unwrap_or(Err(Rejection::ShuttingDown))
}

/// Finds out what the request asks of the choice of its engine, by the strategy of its model.
pub(crate) fn wish(parts: &Parts, session: &Session, context: &mut Context) {
    let Some(target) = &context.target else { return };
    let strategy = parts.routing.strategy_for(target.served.effective.routing);
    context.attempt.strategy = strategy;
    if !strategy.is_keyed() {
        return;
    }
    let headers = &session.req_header().headers;
    let json =
        context.body.as_ref().and_then(|Body { understood, received, .. }| match understood {
            Understood::Json(facts) => Some((facts, received.as_ref())),
            Understood::Form(_) | Understood::Opaque => None,
        });
    context.attempt.wish.key = strategy.key(&Said {
        header: &|name| headers.get(name).and_then(|value| value.to_str().ok()),
        json,
        lengths: parts.routing.lengths,
    });
}
