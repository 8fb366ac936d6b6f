//! Every answer the gateway gives by itself instead of passing a request on. An answer, not an
//! error: nothing went wrong inside, and whoever receives one sends it to the client as it is.
//! `openai/errors` writes the body; `reference.rs` the page in `docs/reference`.

mod message;
mod reference;
#[cfg(test)]
mod tests;

use std::time::Duration;

#[cfg(test)]
pub(crate) use reference::examples;
pub use reference::reference_page;

use crate::activation::Failure;
use crate::ids::ModelId;
use crate::limits::{Excess, Limited};

/// Why a request is answered by the gateway, in the order of the stages that may say so.
#[derive(Clone, Debug, PartialEq, Eq, strum::EnumDiscriminants)]
#[strum_discriminants(
    name(RejectionName),
    derive(strum::EnumIter, strum::IntoStaticStr),
    vis(pub(crate))
)]
pub enum Rejection {
    /// The head of the message is no HTTP that can be read.
    InvalidHead,
    /// The gateway is asked by a name that is none of its own, as by a page whose name was made to lead here.
    HostNotAllowed { host: String },
    /// Plain HTTP where only TLS is spoken.
    PlainHttp,
    /// Nothing is served at this path; `nearest` is a path that looks like it.
    PathNotFound { path: String, nearest: Option<&'static str> },
    /// The path is served, with other methods: `allow` is the value of the `Allow` header.
    MethodNotAllowed { method: String, allow: &'static str },
    /// The message's length cannot be known for sure (two lengths, an unknown transfer coding).
    InvalidFraming { problem: String },
    /// An `Expect` header that asks for something other than `100-continue`.
    UnknownExpectation { expectation: String },
    /// A body that is compressed, where it has to be read.
    CompressedBody { coding: String },
    /// A body of a kind that the API does not take, so that nobody here could read it.
    ContentType { given: String, expected: &'static str },
    /// The body is longer than `--max-body`, in bytes.
    BodyTooLarge { limit: u64 },
    /// The body did not arrive in time.
    ReadTimeout { limit: Duration },
    /// The bodies of all waiting requests together have reached `--max-buffered-bytes`, or those of one
    /// caller as much as is left for all others.
    BufferFull,
    /// The process is stopping and takes nothing new.
    ShuttingDown,

    /// No key is presented, and callers must have one.
    KeyMissing,
    /// Two keys are presented.
    KeysConflict,
    /// The key is nobody's.
    KeyUnknown,
    /// The key has expired.
    KeyExpired,

    /// Neither header, path nor body names a model.
    ModelMissing,
    /// The body is not the JSON object it should be.
    InvalidJson { problem: String },
    /// A key that decides something appears twice, so that two readers could read two values.
    DuplicateKey { key: &'static str },
    /// A key that some readers take for one that decides something, and others do not (`Model`).
    MisspelledKey { key: &'static str, spelled: String },
    /// A field has a value of the wrong kind.
    InvalidField { field: &'static str, expected: &'static str },
    /// The body is not the form that its content type announces.
    InvalidForm { problem: String },
    /// A form or a query names two models that disagree.
    ConflictingModels { first: String, second: String },

    /// No model goes by this name; `nearest` are names that look like it, best first.
    ModelNotFound { name: String, nearest: Vec<String> },
    /// The model exists and is set not to be offered (`litellm.enabled: false`). `name` is how lists would have
    /// it, however it was asked for: metrics count by it.
    ModelParked { name: String },
    /// Several models go by this name; `candidates` are the names that tell them apart.
    ModelAmbiguous { name: String, candidates: Vec<String> },
    /// The model's engine does not serve this API; `hint` says what does, if anything does.
    ApiNotServed { name: String, path: String, hint: Option<String> },
    /// Nothing says which model made this stored response.
    ResponseUnknown { id: String },
    /// The engine that told of this picture or job is gone.
    MakerGone { what: String },
    /// Nobody knows which of several engines told the client of this picture.
    PictureUnknown { file: String },
    /// Several engines told clients at one address of a picture of this name, and nothing says who asks.
    PictureUncertain { file: String },
    /// A field has a value that it must not have (`PROXY_VALIDATE_REQUESTS`); `others` have too.
    ValidationFailed { field: &'static str, expected: &'static str, others: usize },
    /// The request does not fit into the model's context window.
    ContextExceeded { name: String, excess: Excess },
    /// As much as may be was used of the gateway, the model or the caller's share.
    RateLimited { limited: Limited },
    /// The caller's limit is zero: waiting does not help.
    NothingAllowed { limited: Limited },

    /// The model was deleted while the request waited for it.
    ModelRemoved { model: ModelId },

    /// As many requests wait for the model as may (`PROXY_MAX_QUEUE_SIZE`).
    QueueFull { model: ModelId, limit: u32 },
    /// The model is up, and no slot became free in time.
    QueueTimeout { model: ModelId, waited: Duration },
    /// The model did not come up in time. Its load goes on, and a retry joins it.
    ActivationTimeout { model: ModelId, waited: Duration, retry_in: Option<Duration> },
    /// The model cannot come up. `retry_in` is when it is tried again, if it is.
    ActivationFailed { model: ModelId, failure: Failure, retry_in: Option<Duration> },
    /// A model of higher priority holds the GPU and will not leave it.
    HeldByHigherPriority { model: ModelId, holder: ModelId },
    /// The model cannot be up before this request's deadline; it can be in `ready_in`.
    NotBeforeDeadline { model: ModelId, ready_in: Duration },

    /// No connection to the model's engine could be made.
    UpstreamUnreachable { model: ModelId },
    /// The engine's answer broke off before its head was complete, or was not HTTP.
    UpstreamBroke { model: ModelId },
    /// The engine speaks another protocol than `protocol`, in which it had to be spoken to.
    EngineProtocol { model: ModelId, protocol: &'static str },
    /// The engine answers with what a client must not be sent on.
    EngineAnswer { model: ModelId, problem: &'static str },
    /// The engine did not take an adapter that is loaded at its first request.
    AdapterNotLoaded { model: ModelId, adapter: String, problem: String },
    /// The engine stayed silent for longer than it may.
    UpstreamTimeout { model: ModelId, waited: Duration },
    /// A fault of the gateway itself.
    Internal,
}

impl From<Limited> for Rejection {
    fn from(limited: Limited) -> Self {
        match limited.retry_in {
            Some(_) => Self::RateLimited { limited },
            None => Self::NothingAllowed { limited },
        }
    }
}

/// What is fixed about an answer, apart from its message.
struct Terms {
    status: u16,
    kind: &'static str,
    code: &'static str,
    param: Option<&'static str>,
    retry_after: Option<Duration>,
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
    fn terms(&self) -> Terms {
        match self {
            Self::InvalidHead => Terms::new(400, INVALID, "invalid_head"),
            Self::HostNotAllowed { .. } => Terms::new(403, PERMISSION, "host_not_allowed"),
            Self::PlainHttp => Terms::new(400, INVALID, "https_required"),
            Self::PathNotFound { .. } => Terms::new(404, NOT_FOUND, "path_not_found"),
            Self::MethodNotAllowed { .. } => Terms::new(405, INVALID, "method_not_allowed"),
            Self::InvalidFraming { .. } => Terms::new(400, INVALID, "invalid_framing"),
            Self::UnknownExpectation { .. } => Terms::new(417, INVALID, "unknown_expectation"),
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
            Self::ResponseUnknown { .. } => {
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

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.terms().status
    }

    /// `error.code`: stable, for programs.
    pub fn code(&self) -> &'static str {
        self.terms().code
    }

    /// `error.type`: the coarse class that OpenAI's clients know.
    pub fn kind(&self) -> &'static str {
        self.terms().kind
    }

    /// `error.param`: the request's field that is to blame, if one is.
    pub fn param(&self) -> Option<&'static str> {
        self.terms().param
    }

    /// How long to wait before the same request may succeed: whole seconds, at least one. `None`
    /// where waiting alone does not help.
    pub fn retry_after(&self) -> Option<Duration> {
        self.terms().retry_after.map(|after| {
            let begun = u64::from(after.subsec_nanos() > 0);
            Duration::from_secs(after.as_secs().saturating_add(begun).max(1))
        })
    }

    /// Whether clients that try again by themselves, as OpenAI's do after 408, 409, 429 and 5xx, should
    /// not (ROUTE-03): where waiting does not help, or an engine may have worked on the request already.
    /// The header `x-should-retry: false` tells them.
    pub fn is_final(&self) -> bool {
        let tried_again = matches!(self.status(), 408 | 409 | 429 | 500..);
        tried_again
            && self.retry_after().is_none()
            && !matches!(self, Self::UpstreamUnreachable { .. })
    }

    /// The limit that was reached, which `x-ratelimit-…` headers tell.
    pub fn limited(&self) -> Option<&Limited> {
        match self {
            Self::RateLimited { limited } | Self::NothingAllowed { limited } => Some(limited),
            _ => None,
        }
    }

    /// By how much the request does not fit, which the body tells under `error.admission`.
    pub fn excess(&self) -> Option<(&str, &Excess)> {
        match self {
            Self::ContextExceeded { name, excess } => Some((name, excess)),
            _ => None,
        }
    }

    /// The value of the `Allow` header, which every 405 carries.
    pub fn allow(&self) -> Option<&'static str> {
        match self {
            Self::MethodNotAllowed { allow, .. } => Some(allow),
            _ => None,
        }
    }
}
