//! The page `docs/reference/rejections.md`, written from the enum, and one example of every answer.

use std::fmt::Write as _;
use std::time::Duration;

use strum::IntoEnumIterator as _;

use super::{Rejection, RejectionName};
use crate::activation::{Failure, Reason};
use crate::ids::ModelId;
use crate::limits::{Excess, Limited, Rate, Scope, Unit};

const INTRODUCTION: &str = "\
# Answers the gateway gives by itself

Generated from `core/src/rejection`. Every one is JSON in the shape of the API that was called ([dialects](../apis.md)): in
OpenAI's, `{\"error\": {\"message\", \"type\", \"param\", \"code\"}}`. It carries the request's id in `x-request-id`, and its code, which
is stable, in `x-flexinfer-error-code`. `Retry-After` is sent where waiting helps; the figures are
those of the examples. Where it does not, `x-should-retry: false` keeps OpenAI's clients from trying again by themselves. What an engine answers is passed on as it is and is not listed here.

| status | code | type | param | Retry-After | example |
|---|---|---|---|---|---|
";

/// The text of `docs/reference/rejections.md`.
pub fn reference_page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for rejection in examples() {
        let retry = rejection.retry_after().map(|after| format!("{} s", after.as_secs()));
        // Writing to a String cannot fail.
        let _ = writeln!(
            page,
            "| {} | `{}` | `{}` | {} | {} | {} |",
            rejection.status(),
            rejection.code(),
            rejection.kind(),
            rejection.param().map_or_else(|| "–".into(), |param| format!("`{param}`")),
            retry.as_deref().unwrap_or("–"),
            rejection.message().replace('|', "\\|").replace('<', "&lt;"),
        );
    }
    page
}

/// One example of every rejection, in the order of the enum.
pub(crate) fn examples() -> Vec<Rejection> {
    RejectionName::iter().map(example).collect()
}

fn example(name: RejectionName) -> Rejection {
    let model = || ModelId::new("default", "qwen");
    let waited = Duration::from_mins(1);
    match name {
        RejectionName::InvalidHead => Rejection::InvalidHead,
        RejectionName::HostNotAllowed => {
            Rejection::HostNotAllowed { host: "llm.example.com:8080".into() }
        }
        RejectionName::PlainHttp => Rejection::PlainHttp,
        RejectionName::PathNotFound => Rejection::PathNotFound {
            path: "/v1/chat/completion".into(),
            nearest: Some("/v1/chat/completions"),
        },
        RejectionName::MethodNotAllowed => {
            Rejection::MethodNotAllowed { method: "DELETE".into(), allow: "GET, HEAD" }
        }
        RejectionName::UpgradeMissing => Rejection::UpgradeMissing,
        RejectionName::InvalidFraming => Rejection::InvalidFraming {
            problem: "it has both Content-Length and Transfer-Encoding; send one of them".into(),
        },
        RejectionName::UnknownExpectation => {
            Rejection::UnknownExpectation { expectation: "200-maybe".into() }
        }
        RejectionName::RepeatedHeader => Rejection::RepeatedHeader { name: "content-type" },
        RejectionName::CompressedBody => Rejection::CompressedBody { coding: "gzip".into() },
        RejectionName::ContentType => Rejection::ContentType {
            given: "application/octet-stream".into(),
            expected: "application/json",
        },
        RejectionName::BodyTooLarge => Rejection::BodyTooLarge { limit: 268_435_456 },
        RejectionName::ReadTimeout => Rejection::ReadTimeout { limit: waited },
        RejectionName::BufferFull => Rejection::BufferFull,
        RejectionName::ShuttingDown => Rejection::ShuttingDown,
        RejectionName::KeyMissing => Rejection::KeyMissing,
        RejectionName::KeysConflict => Rejection::KeysConflict,
        RejectionName::KeyUnknown => Rejection::KeyUnknown,
        RejectionName::KeyExpired => Rejection::KeyExpired,
        body @ (RejectionName::ModelMissing
        | RejectionName::InvalidJson
        | RejectionName::DuplicateKey
        | RejectionName::MisspelledKey
        | RejectionName::InvalidField
        | RejectionName::InvalidForm
        | RejectionName::ConflictingModels) => example_of_body(body),
        named @ (RejectionName::ModelNotFound
        | RejectionName::ModelParked
        | RejectionName::ModelAmbiguous) => example_of_name(named),
        picture @ (RejectionName::MakerGone
        | RejectionName::PictureUnknown
        | RejectionName::PictureUncertain) => example_of_picture(picture),
        RejectionName::ApiNotServed => Rejection::ApiNotServed {
            name: "qwen".into(),
            path: "/v1/images/generations".into(),
            hint: Some("sdxl does".into()),
        },
        limiting @ (RejectionName::ValidationFailed
        | RejectionName::ContextExceeded
        | RejectionName::RateLimited
        | RejectionName::NothingAllowed) => example_of_limiting(limiting),
        waiting => example_of_waiting_or_sending(waiting, model(), waited),
    }
}

fn example_of_name(name: RejectionName) -> Rejection {
    match name {
        RejectionName::ModelNotFound => {
            Rejection::ModelNotFound { name: "quen".into(), nearest: vec!["qwen".into()] }
        }
        RejectionName::ModelParked => Rejection::ModelParked { name: "qwen".into() },
        _ => Rejection::ModelAmbiguous {
            name: "qwen".into(),
            candidates: vec!["team-a/qwen".into(), "team-b/qwen".into()],
        },
    }
}

fn example_of_picture(name: RejectionName) -> Rejection {
    let file = "ComfyUI_00001_.png".to_owned();
    match name {
        RejectionName::MakerGone => Rejection::MakerGone { what: file },
        RejectionName::PictureUnknown => Rejection::PictureUnknown { file },
        _ => Rejection::PictureUncertain { file },
    }
}

fn example_of_body(name: RejectionName) -> Rejection {
    match name {
        RejectionName::ModelMissing => Rejection::ModelMissing,
        RejectionName::InvalidJson => {
            Rejection::InvalidJson { problem: "expected value at line 1 column 28".into() }
        }
        RejectionName::DuplicateKey => Rejection::DuplicateKey { key: "model" },
        RejectionName::MisspelledKey => {
            Rejection::MisspelledKey { key: "model", spelled: "Model".into() }
        }
        RejectionName::InvalidField => {
            Rejection::InvalidField { field: "model", expected: "a string" }
        }
        RejectionName::InvalidForm => {
            Rejection::InvalidForm { problem: "its content type names no boundary".into() }
        }
        _ => Rejection::ConflictingModels { first: "qwen".into(), second: "llama".into() },
    }
}

fn example_of_limiting(name: RejectionName) -> Rejection {
    let limited = Limited {
        scope: Scope::PerCaller,
        unit: Unit::Tokens,
        limit: 10_000,
        rate: Some(Rate::per_minute(10_000, 10_000)),
        left: 120,
        retry_in: Some(Duration::from_millis(3400)),
    };
    match name {
        RejectionName::ValidationFailed => Rejection::ValidationFailed {
            field: "temperature",
            expected: "a number from 0 to 2",
            others: 1,
        },
        RejectionName::ContextExceeded => Rejection::ContextExceeded {
            name: "qwen".into(),
            excess: Excess {
                tokens_budget: 7782,
                tokens_submitted: 9300,
                tokens_over: 1518,
                suggested_truncate_to: 7526,
                context_window: 8192,
            },
        },
        RejectionName::RateLimited => Rejection::RateLimited { limited },
        _ => Rejection::NothingAllowed {
            limited: Limited {
                unit: Unit::Concurrent,
                limit: 0,
                rate: None,
                left: 0,
                retry_in: None,
                ..limited
            },
        },
    }
}

fn example_of_waiting_or_sending(
    name: RejectionName,
    model: ModelId,
    waited: Duration,
) -> Rejection {
    match name {
        RejectionName::ResponseUnknown => Rejection::ResponseUnknown { id: "resp_1".into() },
        RejectionName::ResponseLost => Rejection::ResponseLost { id: "resp_1".into(), model },
        RejectionName::ModelRemoved => Rejection::ModelRemoved { model },
        RejectionName::QueueFull => Rejection::QueueFull { model, limit: 100 },
        RejectionName::QueueTimeout => Rejection::QueueTimeout { model, waited },
        RejectionName::ActivationTimeout => {
            Rejection::ActivationTimeout { model, waited, retry_in: None }
        }
        RejectionName::ActivationFailed => Rejection::ActivationFailed {
            model,
            failure: Failure::new(
                Reason::ProgramNotFound,
                "llama-server is not in PATH; install llama.cpp or set config.command",
            ),
            retry_in: Some(Duration::from_secs(8)),
        },
        RejectionName::HeldByHigherPriority => {
            Rejection::HeldByHigherPriority { model, holder: ModelId::new("default", "llama") }
        }
        RejectionName::NotBeforeDeadline => {
            Rejection::NotBeforeDeadline { model, ready_in: Duration::from_secs(220) }
        }
        RejectionName::UpstreamUnreachable => Rejection::UpstreamUnreachable { model },
        RejectionName::UpstreamBroke => Rejection::UpstreamBroke { model },
        RejectionName::EngineProtocol => {
            Rejection::EngineProtocol { model, protocol: "HTTP/1.1, by which WebSockets go" }
        }
        RejectionName::EngineAnswer => Rejection::EngineAnswer {
            model,
            problem: "more than 1000 interim answers (1xx) come before it",
        },
        RejectionName::AdapterNotLoaded => Rejection::AdapterNotLoaded {
            model,
            adapter: "sql".into(),
            problem: "vllm answered with 404: no adapter is at /models/adapters/sql".into(),
        },
        RejectionName::UpstreamTimeout => Rejection::UpstreamTimeout { model, waited },
        _ => Rejection::Internal,
    }
}
