//! Understands a body: which model it names, and what else it says. Where its API has the model elsewhere,
//! a body is between the client and the engine.

use bytes::Bytes;
use flexinfer_core::openai::Understood;
use flexinfer_core::openai::apis::{ModelAt, Operation};
use flexinfer_core::rejection::Rejection;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

/// What is in a body that was sent to `operation`.
pub(crate) fn understand(
    operation: Option<&Operation>,
    headers: &HeaderMap,
    received: &Bytes,
) -> Result<Understood, Rejection> {
    if operation.is_some_and(|operation| operation.model_at == ModelAt::Address) {
        return Ok(Understood::Opaque);
    }
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let understood = Understood::read(content_type, received);
    if operation.is_some() {
        return understood;
    }
    // The model was named elsewhere and the path is in no table: what cannot be read, or names no model,
    // is none of our business.
    let named = understood.ok().filter(|body| body.model().is_some());
    Ok(named.unwrap_or(Understood::Opaque))
}
