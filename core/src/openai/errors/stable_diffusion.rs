//! `{"error", "detail", "body", "errors"}`, as clients of the Stable Diffusion web UI read it.

use serde::Serialize;

use crate::rejection::Rejection;

#[derive(Serialize)]
struct Answer<'a> {
    error: &'static str,
    detail: &'a str,
    body: &'static str,
    errors: &'a str,
}

pub(super) fn body(rejection: &Rejection) -> serde_json::Result<Vec<u8>> {
    let message = rejection.message();
    let (detail, errors) = (message.as_str(), message.as_str());
    serde_json::to_vec(&Answer { error: rejection.code(), detail, body: "", errors })
}
