//! A form is read alike whatever pieces it comes in, and a renamed one names its model so.

use bytes::Bytes;
use flexinfer_core::openai::{BodyKind, Form, FormScanner};
use flexinfer_core::rejection::Rejection;
use flexinfer_core::rewriting::{form_model, splice};

use crate::cut;

const CONTENT_TYPE: &str = "multipart/form-data; boundary=B";
const NAME: &str = "org/the-engines";

pub(crate) fn check(input: &[u8]) {
    let (size, body) = cut(input);
    let whole = scanned(body, body.len().max(1));
    assert_eq!(whole, scanned(body, size), "in pieces of {size}");
    let Ok(form) = whole else { return };
    let changed = splice(&Bytes::copy_from_slice(body), form_model(&form, NAME));
    assert!(changed.is_ok(), "splices lie within the body and apart");
    let changed = changed.map(|changed| changed.to_bytes()).unwrap_or_default();
    let again = scanned(&changed, changed.len().max(1));
    let named = again.as_ref().map(|form| form.model.as_ref().map(|model| model.name.as_str()));
    assert_eq!(named, Ok(Some(NAME)));
}

fn scanned(body: &[u8], size: usize) -> Result<Form, Rejection> {
    let Ok(BodyKind::Form(boundary)) = BodyKind::of(Some(CONTENT_TYPE)) else {
        return Err(Rejection::Internal);
    };
    let mut scanner = FormScanner::new(boundary);
    for piece in body.chunks(size) {
        scanner.push(piece)?;
    }
    scanner.finish()
}
