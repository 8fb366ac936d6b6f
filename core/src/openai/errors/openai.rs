//! `{"error": {"message", "type", "param", "code"}}`, as OpenAI's clients read it.

use serde::Serialize;

use crate::limits::Excess;
use crate::rejection::Rejection;

#[derive(Serialize)]
struct Body<'a> {
    error: ErrorObject<'a>,
}

#[derive(Serialize)]
struct ErrorObject<'a> {
    message: &'a str,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<&'static str>,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    admission: Option<Admission<'a>>,
}

/// By how much a request does not fit into its model's context window.
#[derive(Serialize)]
struct Admission<'a> {
    model: &'a str,
    #[serde(flatten)]
    excess: &'a Excess,
}

/// `param` is left out where there is none.
pub(super) fn body(rejection: &Rejection) -> serde_json::Result<Vec<u8>> {
    let message = rejection.message();
    let error = ErrorObject {
        message: &message,
        r#type: rejection.kind(),
        param: rejection.param(),
        code: rejection.code(),
        admission: rejection.excess().map(|(model, excess)| Admission { model, excess }),
    };
    serde_json::to_vec(&Body { error })
}
