//! Multipart forms, as images and audio are sent.

use axum::body::Body;
use axum::extract::{DefaultBodyLimit, FromRequest as _, Multipart};
use bytes::Bytes;
use http::{Request, header};

use super::call::Call;
use super::refusal::Refusal;

/// The parts of a form, in order.
#[derive(Debug)]
pub(super) struct Form {
    parts: Vec<Part>,
}

/// One part.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) file_name: Option<String>,
    pub(super) content: Bytes,
}

impl Form {
    pub(super) async fn read(call: &Call) -> Result<Self, Refusal> {
        let wrong = |what: &dyn std::fmt::Display| {
            Refusal::bad_request(&format!("the form cannot be read: {what}"))
        };
        let mut request = Request::new(Body::from(call.body.clone()));
        if let Some(kind) = call.headers.get(header::CONTENT_TYPE) {
            request.headers_mut().insert(header::CONTENT_TYPE, kind.clone());
        }
        // The body is in memory already: axum's own limit would only refuse it late.
        DefaultBodyLimit::disable().apply(&mut request);
        let mut form = Multipart::from_request(request, &()).await.map_err(|e| wrong(&e))?;
        let mut parts = Vec::new();
        while let Some(field) = form.next_field().await.map_err(|e| wrong(&e))? {
            let name = field.name().unwrap_or("").to_owned();
            let file_name = field.file_name().map(str::to_owned);
            let content = field.bytes().await.map_err(|e| wrong(&e))?;
            parts.push(Part { name, file_name, content });
        }
        Ok(Self { parts })
    }

    /// The first part of this name, or of this name as a list (`image[]`).
    pub(super) fn part(&self, name: &str) -> Option<&Part> {
        self.parts.iter().find(|part| part.name.strip_suffix("[]").unwrap_or(&part.name) == name)
    }

    /// The part of this name as text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.part(name).map(|part| String::from_utf8_lossy(&part.content).into_owned())
    }

    /// The part of this name as a number or another value.
    pub(super) fn parsed<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Refusal> {
        let wrong =
            |text: &str| Refusal::bad_request(&format!("{name}: {text:?} is not understood"));
        self.text(name).map(|text| text.trim().parse().map_err(|_| wrong(&text))).transpose()
    }

    /// The part of this name, without which there is nothing to do.
    pub(super) fn needed(&self, name: &str) -> Result<&Part, Refusal> {
        self.part(name).ok_or_else(|| {
            Refusal::bad_request(&format!("{name}: this part of the form is missing"))
        })
    }
}
