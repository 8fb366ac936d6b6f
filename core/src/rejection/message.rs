//! What a rejection says to a person: what is wrong, and what to do about it.

use std::fmt;
use std::time::Duration;

use super::Rejection;
use crate::limits::{Limited, Rate, Scope, Unit};

/// The longest piece of a request that an answer repeats, in characters.
const LONGEST_ECHO: usize = 120;

impl Rejection {
    /// `error.message`: what is wrong and what to do, in one or two sentences.
    #[expect(clippy::too_many_lines, reason = "one row per answer, like the terms")]
    pub fn message(&self) -> String {
        match self {
            Self::InvalidHead => {
                "the head of the request cannot be read as HTTP: it has a line that is none, is too long, or is meant for https".into()
            }
            Self::HostNotAllowed { host } => format!(
                "this gateway is for its own machine and is not called {}; if it shall be, add the name to --allowed-hosts (FLEXINFER_ALLOWED_HOSTS)",
                Echo(host)
            ),
            Self::PlainHttp => {
                "this address speaks HTTPS only; begin its URL with https://".into()
            }
            Self::PathNotFound { path, nearest: Some(nearest) } => {
                format!("nothing is served at {}; did you mean {nearest}?", Echo(path))
            }
            Self::PathNotFound { path, nearest: None } => format!(
                "nothing is served at {}; GET /v1/models lists the models, and their APIs lie under /v1",
                Echo(path)
            ),
            Self::MethodNotAllowed { method, allow } => {
                format!("{} is not allowed here; use {allow}", Echo(method))
            }
            Self::UpgradeMissing => {
                "a WebSocket is spoken here; begin one by an HTTP/1.1 request with \"Upgrade: websocket\", as libraries for WebSockets do".into()
            }
            Self::InvalidFraming { problem } => {
                format!("the length of the request's body is not certain: {problem}")
            }
            Self::UnknownExpectation { expectation } => {
                format!("cannot meet Expect: {}; only 100-continue is known", Echo(expectation))
            }
            Self::RepeatedHeader { name } => {
                format!("the header {name} comes more than once; send it once")
            }
            Self::CompressedBody { coding } => format!(
                "the body is compressed ({}) and has to be read here; send it as it is, without Content-Encoding",
                Echo(coding)
            ),
            Self::ContentType { given, expected } => format!(
                "a body of the type {} cannot be read here; send {expected} and say so in Content-Type",
                Echo(given)
            ),
            Self::BodyTooLarge { limit } => format!(
                "the request's body is longer than the limit of {limit} bytes; send less, or have --max-body raised"
            ),
            Self::ReadTimeout { limit } => {
                format!("the request's body did not arrive within {}; send it again", Span(*limit))
            }
            Self::BufferFull => {
                "the gateway holds as many request bodies as it may (--max-buffered-bytes), together or of this caller; try again soon".into()
            }
            Self::ShuttingDown => "the gateway is shutting down; try again soon".into(),

            Self::KeyMissing => {
                "no API key was sent; send it as \"Authorization: Bearer <key>\" or in x-api-key".into()
            }
            Self::KeysConflict => "two API keys were sent; send one".into(),
            Self::KeyUnknown => "this API key is not known; check it, or ask for a new one".into(),
            Self::KeyExpired => "this API key has expired; ask for a new one".into(),

            Self::ModelMissing => {
                "no model is named; put it into the body's \"model\" field, the X-Model-ID header or the path (/model/<name>/...)".into()
            }
            Self::InvalidJson { problem } => {
                format!("the body is not a JSON object that can be read: {problem}")
            }
            Self::DuplicateKey { key } => format!(
                "the body has the key \"{key}\" twice, which two readers can understand in two ways; send it once"
            ),
            Self::MisspelledKey { key, spelled } => format!(
                "the body has the key {}, which some readers take for \"{key}\" and others do not; spell it \"{key}\"",
                Echo(spelled)
            ),
            Self::InvalidField { field, expected } => format!("\"{field}\" must be {expected}"),
            Self::InvalidForm { problem } => format!("the form cannot be read: {problem}"),
            Self::ConflictingModels { first, second } => format!(
                "the request names two models that disagree ({} and {}); send one",
                Echo(first),
                Echo(second)
            ),

            Self::ModelNotFound { name, nearest } => {
                format!("model {} does not exist; {}", Echo(name), Nearest(nearest))
            }
            Self::ModelParked { name } => {
                format!("model {} is parked: its owner has set it not to be offered", Echo(name))
            }
            Self::ModelAmbiguous { name, candidates } => format!(
                "several models go by {}; say which one: {}",
                Echo(name),
                candidates.join(", ")
            ),
            Self::ResponseUnknown { id } => format!(
                "no response {} is known here; if another gateway saw it made, name its model in the X-Model-ID header",
                Echo(id)
            ),
            Self::ResponseLost { id, model } => format!(
                "response {} is not stored any more: the engine of model {} that had it in memory has ended or is about to; if responses are kept on a disk, wake the model first by another request",
                Echo(id),
                model.name
            ),
            Self::MakerGone { what } => format!(
                "the engine that made {} is gone, and no other is asked for it; queue its prompt again",
                Echo(what)
            ),
            Self::PictureUnknown { file } => format!(
                "no engine is known here to have told you of a picture {}; ask for the history of its prompt first, or keep cookies",
                Echo(file)
            ),
            Self::PictureUncertain { file } => format!(
                "several engines told clients at your address of a picture {}, each of its own; keep cookies, or say who you are (clientId)",
                Echo(file)
            ),
            Self::ApiNotServed { name, path, hint } => {
                let hint = hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default();
                format!("model {} does not serve {}{hint}", Echo(name), Echo(path))
            }
            Self::ModelRemoved { model } => {
                format!("model {} was removed while the request waited for it", model.name)
            }
            Self::ValidationFailed { field, expected, others } => {
                let more = Others(*others);
                format!("\"{field}\" must be {expected}{more}")
            }
            Self::ContextExceeded { name, excess } => format!(
                "the request takes about {} tokens and the context of model {} holds {}; shorten the prompt to {} tokens or ask for a shorter answer",
                excess.tokens_submitted,
                Echo(name),
                excess.tokens_budget,
                excess.suggested_truncate_to
            ),
            Self::RateLimited { limited } => format!(
                "{} may have {}; try again in {}",
                Whose(limited.scope),
                Amount(limited),
                Span(limited.retry_in.unwrap_or_default())
            ),
            Self::NothingAllowed { limited } => {
                format!("{} may have {}; have the limit raised", Whose(limited.scope), Amount(limited))
            }

            Self::QueueFull { model, limit: 0 } => format!(
                "model {} has no free slot and takes no queue; if it sleeps it is being woken, try again soon",
                model.name
            ),
            Self::QueueFull { model, limit } => format!(
                "{} {} for model {} already, which is as many as may; try again soon",
                Many(*limit, "request"),
                if *limit == 1 { "waits" } else { "wait" },
                model.name
            ),
            Self::QueueTimeout { model, waited } => format!(
                "model {} had no free slot for {}; try again soon",
                model.name,
                Span(*waited)
            ),
            Self::ActivationTimeout { model, waited, retry_in: Some(retry_in) } => format!(
                "model {} was not there for it within {}; its GPU is taken for {} more",
                model.name,
                Span(*waited),
                Span(*retry_in)
            ),
            Self::ActivationTimeout { model, waited, retry_in: None } => format!(
                "model {} was not there for it within {}; a load that has begun goes on, try again soon",
                model.name,
                Span(*waited)
            ),
            Self::ActivationFailed { model, failure, .. } => {
                format!("model {} cannot be started: {failure}", model.name)
            }
            Self::HeldByHigherPriority { model, holder } => format!(
                "model {} has to wait for {}, which has a higher priority and stays on the GPU they share",
                model.name, holder.name
            ),
            Self::NotBeforeDeadline { model, ready_in } => format!(
                "model {} cannot be up before this request's deadline; try again in {}",
                model.name,
                Span(*ready_in)
            ),

            Self::UpstreamUnreachable { model } => {
                format!("the engine of model {} cannot be reached; try again", model.name)
            }
            Self::UpstreamBroke { model } => {
                format!("the engine of model {} broke off before it answered", model.name)
            }
            Self::EngineProtocol { model, protocol } => {
                format!("the engine of model {} does not speak {protocol}", model.name)
            }
            Self::EngineAnswer { model, problem } => {
                format!("the answer of the engine of model {} is not passed on: {problem}", model.name)
            }
            Self::AdapterNotLoaded { model, adapter, problem } => format!(
                "the engine of model {} did not load the adapter {}: {problem}",
                model.name,
                Echo(adapter)
            ),
            Self::UpstreamTimeout { model, waited } => format!(
                "the engine of model {} sent nothing for {}",
                model.name,
                Span(*waited)
            ),
            Self::Internal => {
                "the gateway failed; its log has the details under this request's id".into()
            }
        }
    }
}

/// A piece of the request, in quotes, short, and without anything that could break a log line.
struct Echo<'a>(&'a str);

impl fmt::Display for Echo<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("'")?;
        for character in self.0.chars().take(LONGEST_ECHO) {
            write!(formatter, "{}", if character.is_control() { '\u{fffd}' } else { character })?;
        }
        let rest = if self.0.chars().nth(LONGEST_ECHO).is_some() { "…'" } else { "'" };
        formatter.write_str(rest)
    }
}

/// A duration as people say it: `850ms`, `2.5s`, `3m20s`.
struct Span(Duration);

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        match seconds {
            0 => write!(formatter, "{}ms", self.0.as_millis()),
            1..60 if self.0.subsec_millis() < 100 => write!(formatter, "{seconds}s"),
            1..60 => write!(formatter, "{seconds}.{}s", self.0.subsec_millis() / 100),
            _ if seconds.is_multiple_of(60) => write!(formatter, "{}m", seconds / 60),
            _ => write!(formatter, "{}m{}s", seconds / 60, seconds % 60),
        }
    }
}

/// Whose limit it is.
struct Whose(Scope);

impl fmt::Display for Whose {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.0 {
            Scope::Global => "all callers together",
            Scope::PerModel => "this model",
            Scope::PerCaller => "this API key",
            Scope::PerTenant => "all API keys of this tenant",
        })
    }
}

/// What may be had of it.
struct Amount<'a>(&'a Limited);

impl fmt::Display for Amount<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limited { unit, limit, rate, left, .. } = *self.0;
        match (limit, unit, rate) {
            (0, Unit::Tokens, _) => formatter.write_str("no tokens"),
            (0, ..) => formatter.write_str("no requests"),
            (_, Unit::Tokens, Some(rate)) => {
                let (tokens, period) = (Many(rate.units, "token"), Period(rate));
                let are = if left == 1 { "is" } else { "are" };
                write!(formatter, "{tokens} {period} of each model, and {left} {are} left now")
            }
            (_, Unit::Requests, Some(rate)) => {
                let (requests, period) = (Many(rate.units, "request"), Period(rate));
                write!(formatter, "{requests} {period} ({limit} at once), and none is left now")
            }
            _ => write!(formatter, "{} at the same time", Many(limit, "request")),
        }
    }
}

/// So many of what is called this.
struct Many(u32, &'static str);

impl fmt::Display for Many {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(count, one) = *self;
        write!(formatter, "{count} {one}{}", if count == 1 { "" } else { "s" })
    }
}

/// In which time a rate's units come back: `a minute`.
struct Period(Rate);

impl fmt::Display for Period {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.period.as_secs() {
            1 => formatter.write_str("a second"),
            60 => formatter.write_str("a minute"),
            _ => write!(formatter, "each {}", Span(self.0.period)),
        }
    }
}

/// How many more there are.
struct Others(usize);

impl fmt::Display for Others {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            1 => formatter.write_str("; one more field is wrong"),
            count => write!(formatter, "; {count} more fields are wrong"),
        }
    }
}

/// What to try in place of a name that nothing goes by.
struct Nearest<'a>(&'a [String]);

impl fmt::Display for Nearest<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => formatter.write_str("GET /v1/models lists those that do"),
            names => write!(formatter, "did you mean {}?", names.join(", ")),
        }
    }
}
