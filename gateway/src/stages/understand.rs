//! Understands a body: which model it names, whether it asks for a stream, and where an engine must read
//! something else than the client wrote.

use bytes::Bytes;
use flexinfer_core::openai::paths::Operation;
use flexinfer_core::openai::{BodyKind, Boundary, Facts, Form, FormScanner};
use flexinfer_core::rejection::Rejection;
use flexinfer_core::rewriting::{Splice, form_model, json_model};
use http::HeaderMap;
use http::header::CONTENT_TYPE;

/// A form is scanned in steps of this many bytes, which is what the scanner copies at once.
const STEP: usize = 64 * 1024;

/// What is known about a body.
pub(crate) enum Understood {
    /// A JSON object.
    Json(Facts),
    /// A form.
    Form(Form),
    /// Something that is passed on as it is.
    Opaque,
}

/// What is in a body that was sent to `operation`.
pub(crate) fn understand(
    operation: Option<&Operation>,
    headers: &HeaderMap,
    received: &Bytes,
) -> Result<Understood, Rejection> {
    if received.is_empty() {
        return Ok(Understood::Opaque);
    }
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if operation.is_some() {
        return as_announced(BodyKind::of(content_type)?, received);
    }
    // The model was named elsewhere and the path is in no table: what cannot be read, or names no model,
    // is none of our business.
    let kind = BodyKind::of(content_type).unwrap_or(BodyKind::Opaque);
    let understood = as_announced(kind, received).ok();
    Ok(understood.filter(|body| body.model().is_some()).unwrap_or(Understood::Opaque))
}

fn as_announced(kind: BodyKind, received: &Bytes) -> Result<Understood, Rejection> {
    match kind {
        BodyKind::Json => Facts::read(received).map(Understood::Json),
        BodyKind::Form(boundary) => form(boundary, received).map(Understood::Form),
        BodyKind::Opaque => Ok(Understood::Opaque),
    }
}

fn form(boundary: Boundary, received: &Bytes) -> Result<Form, Rejection> {
    let mut scanner = FormScanner::new(boundary);
    for step in received.chunks(STEP) {
        scanner.push(step)?;
    }
    scanner.finish()
}

impl Understood {
    /// The model that the body names.
    pub(crate) fn model(&self) -> Option<&str> {
        match self {
            Self::Json(facts) => facts.model.as_ref().map(|field| field.name.as_str()),
            Self::Form(form) => form.model.as_ref().map(|parts| parts.name.as_str()),
            Self::Opaque => None,
        }
    }

    /// Whether it asks for a stream of events.
    pub(crate) fn stream(&self) -> bool {
        matches!(self, Self::Json(facts) if facts.stream)
    }

    /// What makes the body name `model`.
    pub(crate) fn renamed(&self, model: &str) -> Vec<Splice> {
        match self {
            Self::Json(facts) => json_model(facts, model),
            Self::Form(form) => form_model(form, model),
            Self::Opaque => Vec::new(),
        }
    }
}
