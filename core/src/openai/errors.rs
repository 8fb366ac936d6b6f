//! The body of a rejection in OpenAI's error shape.

use serde::Serialize;

use crate::limits::Excess;
use crate::rejection::Rejection;

/// The content type of every rejection.
pub const CONTENT_TYPE: &str = "application/json";

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

/// `{"error": {"message", "type", "param", "code"}}`, with `param` left out where there is none.
pub fn error_body(rejection: &Rejection) -> Vec<u8> {
    let message = rejection.message();
    let error = ErrorObject {
        message: &message,
        r#type: rejection.kind(),
        param: rejection.param(),
        code: rejection.code(),
        admission: rejection.excess().map(|(model, excess)| Admission { model, excess }),
    };
    // Strings and string keys are all there is, and those can always be written.
    serde_json::to_vec(&Body { error }).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::rejection::examples;

    #[test]
    fn every_rejection_in_openais_shape() {
        let mut shown = String::new();
        for rejection in examples() {
            let body = String::from_utf8(error_body(&rejection)).expect("JSON is UTF-8");
            writeln!(shown, "{} {body}", rejection.status()).expect("a String takes all");
        }
        insta::assert_snapshot!(shown);
    }

    #[test]
    fn a_name_with_quotes_and_controls_stays_inside_its_string() {
        let name = "a\",\"code\":\"x\n\u{1}".to_owned();
        let body = error_body(&Rejection::ModelNotFound { name, nearest: Vec::new() });
        let parsed: serde_json::Value = serde_json::from_slice(&body).expect("still JSON");
        assert_eq!(parsed["error"]["code"], "model_not_found");
    }
}
