//! Every answer the gateway gives by itself instead of passing a request on. An answer, not an
//! error: nothing went wrong inside, and whoever receives one sends it to the client as it is.
//! `openai/errors` writes the body; `reference.rs` the page in `docs/reference`.

mod message;
mod reference;
mod terms;
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
    /// A path of which only WebSockets are spoken, asked for by a request that does not ask for one.
    UpgradeMissing,
    /// The message's length cannot be known for sure (two lengths, an unknown transfer coding).
    InvalidFraming { problem: String },
    /// An `Expect` header that asks for something other than `100-continue`.
    UnknownExpectation { expectation: String },
    /// A header that decides something comes twice, so that two readers could read two values.
    RepeatedHeader { name: &'static str },
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
    /// What the model's engine had stored went with it, or is about to.
    ResponseLost { id: String, model: ModelId },
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

impl Rejection {
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

    /// The value of the `Upgrade` header, which every 426 carries.
    pub fn upgrade(&self) -> Option<&'static str> {
        matches!(self, Self::UpgradeMissing).then_some("websocket")
    }

    /// The value of the `Allow` header, which every 405 carries.
    pub fn allow(&self) -> Option<&'static str> {
        match self {
            Self::MethodNotAllowed { allow, .. } => Some(allow),
            _ => None,
        }
    }
}
