//! Understands a body: which model it names, whether it asks for a stream, and where an engine must read
//! something else than the client wrote.

use bytes::Bytes;
use flexinfer_core::openai::Facts;
use flexinfer_core::openai::paths::Operation;
use flexinfer_core::rejection::Rejection;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

use crate::context::{Body, BodyKind};
use crate::replay::Held;

/// What is in a body. The rule for JSON (HTTP-10): at a listed path a body is JSON whatever its content
/// type says, unless that says it is a form.
pub(crate) fn understand(
    operation: Option<&Operation>,
    headers: &HeaderMap,
    received: Bytes,
    held: Held,
) -> Result<Body, Rejection> {
    let kind = match operation {
        _ if received.is_empty() => BodyKind::Opaque,
        Some(_) if is_form(headers) => BodyKind::Opaque,
        Some(_) => BodyKind::Json(Facts::read(&received)?),
        // The model was named elsewhere, so a body that is not understood decides nothing.
        None => Facts::read(&received)
            .ok()
            .filter(|facts| facts.model.is_some())
            .map_or(BodyKind::Opaque, BodyKind::Json),
    };
    Ok(Body { received, kind, upload: None, _held: held })
}

impl BodyKind {
    /// The model that the body names.
    pub(crate) fn model(&self) -> Option<&str> {
        match self {
            Self::Json(facts) => facts.model.as_ref().map(|field| field.name.as_str()),
            Self::Opaque => None,
        }
    }

    /// Whether it asks for a stream of events.
    pub(crate) fn stream(&self) -> bool {
        matches!(self, Self::Json(facts) if facts.stream)
    }
}

fn is_form(headers: &HeaderMap) -> bool {
    const FORM: &[u8] = b"multipart/form-data";
    let starts = |value: &[u8]| {
        value.get(..FORM.len()).is_some_and(|start| start.eq_ignore_ascii_case(FORM))
    };
    headers.get(CONTENT_TYPE).is_some_and(|value| starts(value.as_bytes()))
}
