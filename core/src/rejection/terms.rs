//! What is fixed about each answer: its status, its names for programs, and when to ask again.

use std::time::Duration;

use super::Rejection;

/// What is fixed about an answer, apart from its message.
pub(super) struct Terms {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) code: &'static str,
    pub(super) param: Option<&'static str>,
    pub(super) retry_after: Option<Duration>,
}

impl Terms {
    const fn new(status: u16, kind: &'static str, code: &'static str) -> Self {
        Self { status, kind, code, param: None, retry_after: None }
    }

    const fn param(self, param: &'static str) -> Self {
        Self { param: Some(param), ..self }
    }

    const fn retry(self, after: Duration) -> Self {
        Self { retry_after: Some(after), ..self }
    }
}

const INVALID: &str = "invalid_request_error";
const RATE_LIMIT: &str = "rate_limit_error";
const PERMISSION: &str = "permission_error";
const NOT_FOUND: &str = "not_found_error";
const UNAVAILABLE: &str = "service_unavailable_error";
const TIMEOUT: &str = "timeout_error";
const UPSTREAM: &str = "upstream_error";
const SERVER: &str = "server_error";

/// Something short is in the way: a buffer, a slot, an engine that is being replaced.
const SOON: Duration = Duration::from_secs(2);
/// A model is loading.
const AFTER_SOME_LOADING: Duration = Duration::from_secs(5);
/// Another model has to leave first.
const AFTER_A_WHILE: Duration = Duration::from_secs(30);

impl Rejection {
    #[expect(clippy::too_many_lines, reason = "one row per answer")]
    pub(super) fn terms(&self) -> Terms {
        match self {
            Self::InvalidHead => Terms::new(400, INVALID, "invalid_head"),
            Self::HostNotAllowed { .. } => Terms::new(403, PERMISSION, "host_not_allowed"),
            Self::PlainHttp => Terms::new(400, INVALID, "https_required"),
            Self::PathNotFound { .. } => Terms::new(404, NOT_FOUND, "path_not_found"),
            Self::MethodNotAllowed { .. } => Terms::new(405, INVALID, "method_not_allowed"),
            Self::UpgradeMissing => Terms::new(426, INVALID, "upgrade_required"),
            Self::InvalidFraming { .. } => Terms::new(400, INVALID, "invalid_framing"),
            Self::UnknownExpectation { .. } => Terms::new(417, INVALID, "unknown_expectation"),
            Self::RepeatedHeader { .. } => Terms::new(400, INVALID, "repeated_header"),
            Self::CompressedBody { .. } => Terms::new(415, INVALID, "compressed_body"),
            Self::ContentType { .. } => Terms::new(415, INVALID, "unsupported_content_type"),
            Self::BodyTooLarge { .. } => Terms::new(413, INVALID, "body_too_large"),
            Self::ReadTimeout { .. } => Terms::new(408, TIMEOUT, "read_timeout"),
            Self::BufferFull => Terms::new(503, UNAVAILABLE, "buffer_full").retry(SOON),
            Self::ShuttingDown => Terms::new(503, UNAVAILABLE, "shutting_down").retry(SOON),

            Self::KeyMissing | Self::KeysConflict | Self::KeyUnknown | Self::KeyExpired => {
                Terms::new(401, INVALID, "invalid_api_key")
            }

            Self::ModelMissing => Terms::new(400, INVALID, "missing_required_field").param("model"),
            Self::InvalidJson { .. } => Terms::new(400, INVALID, "invalid_json"),
            Self::DuplicateKey { key } => Terms::new(400, INVALID, "duplicate_key").param(key),
            Self::MisspelledKey { key, .. } => {
                Terms::new(400, INVALID, "misspelled_key").param(key)
            }
            Self::InvalidField { field, .. } => {
                Terms::new(400, INVALID, "invalid_field_value").param(field)
            }
            Self::InvalidForm { .. } => Terms::new(400, INVALID, "invalid_multipart"),
            Self::ConflictingModels { .. } => {
                Terms::new(400, INVALID, "conflicting_models").param("model")
            }

            Self::ModelNotFound { .. } | Self::ModelParked { .. } | Self::ModelRemoved { .. } => {
                Terms::new(404, NOT_FOUND, "model_not_found").param("model")
            }
            Self::ModelAmbiguous { .. } => {
                Terms::new(404, NOT_FOUND, "model_ambiguous").param("model")
            }
            Self::ApiNotServed { .. } => {
                Terms::new(404, NOT_FOUND, "api_not_served").param("model")
            }
            Self::ResponseUnknown { .. } | Self::ResponseLost { .. } => {
                Terms::new(404, NOT_FOUND, "response_not_found").param("response_id")
            }
            Self::MakerGone { .. } => Terms::new(410, NOT_FOUND, "maker_gone"),
            Self::PictureUnknown { .. } => Terms::new(404, NOT_FOUND, "picture_unknown"),
            Self::PictureUncertain { .. } => Terms::new(409, INVALID, "picture_uncertain"),
            Self::ValidationFailed { field, .. } => {
                Terms::new(400, INVALID, "validation_error").param(field)
            }
            Self::ContextExceeded { .. } => Terms::new(413, INVALID, "context_window_exceeded"),
            Self::RateLimited { limited } => Terms {
                retry_after: limited.retry_in,
                ..Terms::new(429, RATE_LIMIT, "rate_limit_exceeded")
            },
            Self::NothingAllowed { .. } => Terms::new(403, PERMISSION, "limit_is_zero"),

            Self::QueueFull { .. } => Terms::new(503, UNAVAILABLE, "queue_full").retry(SOON),
            Self::QueueTimeout { .. } => Terms::new(503, UNAVAILABLE, "queue_timeout").retry(SOON),
            Self::ActivationTimeout { retry_in, .. } => {
                Terms::new(503, UNAVAILABLE, "activation_timeout")
                    .retry(retry_in.unwrap_or(AFTER_SOME_LOADING))
            }
            Self::ActivationFailed { retry_in, .. } => Terms {
                retry_after: *retry_in,
                ..Terms::new(503, UNAVAILABLE, "activation_failed")
            },
            Self::HeldByHigherPriority { .. } => {
                Terms::new(503, UNAVAILABLE, "held_by_higher_priority").retry(AFTER_A_WHILE)
            }
            Self::NotBeforeDeadline { ready_in, .. } => {
                Terms::new(503, UNAVAILABLE, "not_before_deadline").retry(*ready_in)
            }

            Self::UpstreamUnreachable { .. } | Self::UpstreamBroke { .. } => {
                Terms::new(502, UPSTREAM, "bad_gateway")
            }
            Self::EngineProtocol { .. } => Terms::new(502, UPSTREAM, "engine_protocol"),
            Self::EngineAnswer { .. } => Terms::new(502, UPSTREAM, "engine_answer"),
            Self::AdapterNotLoaded { .. } => Terms::new(502, UPSTREAM, "adapter_not_loaded"),
            Self::UpstreamTimeout { .. } => Terms::new(504, TIMEOUT, "timeout"),
            Self::Internal => Terms::new(500, SERVER, "server_error"),
        }
    }
}
