//! `{"error": {"type", "message", "details", "extra_info"}, "node_errors"}`, as ComfyUI's clients read
//! a prompt that was refused.

use serde::Serialize;

use crate::rejection::Rejection;

#[derive(Serialize)]
struct Body<'a> {
    error: ErrorObject<'a>,
    node_errors: Nothing,
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    r#type: &'static str,
    message: &'a str,
    details: &'static str,
    extra_info: Nothing,
}

/// Written as `{}`.
#[derive(Serialize)]
struct Nothing {}

pub(super) fn body(rejection: &Rejection) -> serde_json::Result<Vec<u8>> {
    let message = rejection.message();
    let error = ErrorObject {
        r#type: rejection.code(),
        message: &message,
        details: "",
        extra_info: Nothing {},
    };
    serde_json::to_vec(&Body { error, node_errors: Nothing {} })
}
