//! `{"error": "…"}`, as Ollama's clients read it.

use serde::Serialize;

use crate::rejection::Rejection;

#[derive(Serialize)]
struct Body<'a> {
    error: &'a str,
}

pub(super) fn body(rejection: &Rejection) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&Body { error: &rejection.message() })
}
