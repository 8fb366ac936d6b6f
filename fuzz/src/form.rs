//! A form that `multer` accepts is read as it reads it, whatever pieces it comes in, and a renamed one names its
//! model so.

use std::convert::Infallible;

use bytes::Bytes;
use flexinfer_core::openai::{BodyKind, Form, FormScanner};
use flexinfer_core::rejection::Rejection;
use flexinfer_core::rewriting::{form_model, splice};
use futures::executor::block_on;
use futures::stream;

use crate::cut;

const CONTENT_TYPE: &str = "multipart/form-data; boundary=B";
const NAME: &str = "org/the-engines";

pub(crate) fn check(input: &[u8]) {
    let (size, body) = cut(input);
    let whole = scanned(body, body.len().max(1));
    assert_eq!(whole, scanned(body, size), "in pieces of {size}");
    let Ok(form) = whole else { return };
    // What it refuses, such as a first line that is nearly a boundary, an engine refuses too: nothing
    // is read in two ways.
    let Some(models) = models(body) else { return };
    let named = form.model.as_ref().map(|model| model.name.as_bytes());
    assert_eq!(models.first().map(Vec::as_slice), named);
    assert!(models.iter().all(|model| Some(model.as_slice()) == named), "they agree");
    let changed = splice(&Bytes::copy_from_slice(body), form_model(&form, NAME));
    assert!(changed.is_ok(), "splices lie within the body and apart");
    if let Ok(changed) = changed {
        let renamed = self::models(&changed.to_bytes()).unwrap_or_default();
        assert_eq!(renamed.len(), models.len().max(1));
        assert!(renamed.iter().all(|model| model == NAME.as_bytes()), "{renamed:?}");
    }
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

/// The fields called `model`, as `multer` finds them; nothing where it refuses the form.
fn models(body: &[u8]) -> Option<Vec<Vec<u8>>> {
    let body = Bytes::copy_from_slice(body);
    block_on(async {
        let pieces = stream::once(async { Ok::<_, Infallible>(body) });
        let mut form = multer::Multipart::new(pieces, "B");
        let mut models = Vec::new();
        while let Some(field) = form.next_field().await.ok()? {
            let is_model = field.name() == Some("model") && field.file_name().is_none();
            let content = field.bytes().await.ok()?;
            if is_model {
                models.push(content.to_vec());
            }
        }
        Some(models)
    })
}
