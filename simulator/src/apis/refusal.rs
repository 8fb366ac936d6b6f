//! Answers that say no, in the words and shapes vLLM uses.

use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde_json::json;

/// Why a request is not served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("{0}")]
    BadRequest(String),
    /// A wrong order to load or unload an adapter.
    #[error("{0}")]
    InvalidUserInput(String),
    #[error("The model `{0}` does not exist.")]
    NoSuchModel(String),
    #[error("{0}")]
    NotFound(String),
    #[error("The model is still loading; ask again later.")]
    Loading,
    #[error("The engine is overloaded; ask again later.")]
    Unavailable,
    #[error("Too many requests; ask again later.")]
    TooManyRequests,
    #[error(
        "This model's maximum context length is {window} tokens. However, you requested {} tokens \
         ({prompt} in the messages, {limit} in the completion). Please reduce the length of the \
         messages or completion.",
        prompt + limit
    )]
    TooLong { window: usize, prompt: usize, limit: usize },
}

impl Refusal {
    pub(crate) fn bad_request(message: &str) -> Self {
        Self::BadRequest(message.to_owned())
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::BadRequest(_) | Self::InvalidUserInput(_) | Self::TooLong { .. } => {
                StatusCode::BAD_REQUEST
            }
            Self::NoSuchModel(_) | Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Loading | Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::BadRequest(_) | Self::TooLong { .. } => "BadRequestError",
            Self::InvalidUserInput(_) => "InvalidUserInput",
            Self::NoSuchModel(_) | Self::NotFound(_) => "NotFoundError",
            Self::Loading | Self::Unavailable => "ServiceUnavailableError",
            Self::TooManyRequests => "RateLimitError",
        }
    }

    /// The same refusal in Anthropic's shape.
    pub(crate) fn in_anthropic_shape(&self) -> Response {
        let kind = match self.status() {
            StatusCode::BAD_REQUEST => "invalid_request_error",
            StatusCode::NOT_FOUND => "not_found_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            _ => "overloaded_error",
        };
        let error = json!({"type": kind, "message": self.to_string()});
        self.with_body(&json!({"type": "error", "error": error}))
    }

    /// The same refusal in Ollama's shape.
    pub(crate) fn in_ollama_shape(&self) -> Response {
        self.with_body(&json!({ "error": self.to_string() }))
    }

    fn with_body(&self, body: &serde_json::Value) -> Response {
        let kind = (header::CONTENT_TYPE, "application/json");
        let mut response = (self.status(), [kind], body.to_string()).into_response();
        if *self == Self::TooManyRequests {
            response.headers_mut().insert(header::RETRY_AFTER, http::HeaderValue::from_static("1"));
        }
        response
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let param = matches!(self, Self::NoSuchModel(_)).then_some("model");
        let error = json!({
            "message": self.to_string(),
            "type": self.kind(),
            "param": param,
            "code": self.status().as_u16(),
        });
        self.with_body(&json!({ "error": error }))
    }
}

impl From<Refusal> for Response {
    fn from(refusal: Refusal) -> Self {
        refusal.into_response()
    }
}
