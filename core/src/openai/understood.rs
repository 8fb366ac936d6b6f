//! A whole body, read as what its content type says it is.

use super::apis::Streams;
use super::facts::Key;
use super::{BodyKind, Facts, Form, FormScanner};
use crate::rejection::Rejection;

/// A form is scanned in steps of this many bytes, which is what the scanner copies at once.
const STEP: usize = 64 * 1024;

/// What a request's body says, whatever kind it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Understood {
    /// A JSON object.
    Json(Facts),
    /// A form.
    Form(Form),
    /// Nothing that is looked at: no body at all, or bytes of another kind.
    Opaque,
}

impl Understood {
    /// Reads a body whose header `Content-Type` is `content_type`. No body is no mistake, since
    /// header or path may name the model (BODY-28).
    pub fn read(content_type: Option<&str>, body: &[u8]) -> Result<Self, Rejection> {
        if body.is_empty() {
            return Ok(Self::Opaque);
        }
        match BodyKind::of(content_type)? {
            BodyKind::Json => Facts::read(body).map(Self::Json),
            BodyKind::Form(boundary) => {
                let mut scanner = FormScanner::new(boundary);
                for step in body.chunks(STEP) {
                    scanner.push(step)?;
                }
                scanner.finish().map(Self::Form)
            }
            BodyKind::Opaque => Ok(Self::Opaque),
        }
    }

    /// The model that the body names.
    pub fn model(&self) -> Option<&str> {
        match self {
            Self::Json(facts) => facts.model.as_ref().map(|field| field.name.as_str()),
            Self::Form(form) => form.model.as_ref().map(|parts| parts.name.as_str()),
            Self::Opaque => None,
        }
    }

    /// Whether it asks for a stream where answers are streams like this; `body` is what was read.
    pub fn stream(&self, streams: Streams, body: &[u8]) -> bool {
        match (streams, self) {
            (Streams::Upgraded, _) => true,
            (Streams::Asked, Self::Json(facts)) => facts.stream,
            (Streams::Asked, Self::Form(form)) => form.stream,
            (Streams::UnlessDeclined, Self::Json(facts)) => {
                facts.text(Key::Stream, body) != Some("false")
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_28_no_body_says_nothing_and_is_no_mistake() {
        for content_type in [None, Some("application/json"), Some("multipart/form-data")] {
            assert_eq!(Understood::read(content_type, b""), Ok(Understood::Opaque));
        }
    }

    #[test]
    fn every_kind_of_body_names_its_model() {
        let json = Understood::read(None, br#"{"model":"m","stream":true}"#).expect("JSON");
        assert_eq!(json.model(), Some("m"));
        let form = b"--B\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--B--";
        let form = Understood::read(Some("multipart/form-data; boundary=B"), form).expect("form");
        assert_eq!(form.model(), Some("m"));
        let sound = Understood::read(Some("audio/wav"), b"RIFF").expect("passed over");
        assert_eq!(sound.model(), None);
        assert!(Understood::read(Some("application/json"), b"RIFF").is_err());
    }

    #[test]
    fn a_stream_is_asked_for_or_not_declined_as_the_api_has_it() {
        for (body, asked, not_declined) in [
            (r#"{"model":"m"}"#, false, true),
            (r#"{"model":"m","stream":true}"#, true, true),
            (r#"{"model":"m","stream":false}"#, false, false),
            (r#"{"model":"m","stream":"true"}"#, false, true),
        ] {
            let read = Understood::read(None, body.as_bytes()).expect("JSON");
            assert_eq!(read.stream(Streams::Asked, body.as_bytes()), asked, "{body}");
            assert_eq!(read.stream(Streams::UnlessDeclined, body.as_bytes()), not_declined);
            assert!(!read.stream(Streams::Never, body.as_bytes()));
        }
    }
}
