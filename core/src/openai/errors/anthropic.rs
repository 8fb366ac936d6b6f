//! `{"type": "error", "error": {"type", "message"}, "request_id"}`, as Anthropic's clients read it.

use serde::Serialize;

use crate::rejection::Rejection;

#[derive(Serialize)]
struct Body<'a> {
    r#type: &'static str,
    error: ErrorObject<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    r#type: &'static str,
    message: &'a str,
}

pub(super) fn body(rejection: &Rejection, request_id: Option<&str>) -> serde_json::Result<Vec<u8>> {
    let error = ErrorObject { r#type: kind(rejection.status()), message: &rejection.message() };
    serde_json::to_vec(&Body { r#type: "error", error, request_id })
}

/// The class that Anthropic's own service has for what ends with this status.
const fn kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        408 | 504 => "timeout_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 => "overloaded_error",
        500..=599 => "api_error",
        _ => "invalid_request_error",
    }
}
