//! What the gateway answers about its models by itself, in the shape of whoever asks: lists, and one
//! model by its name. Nothing here waits for an engine.

use flexinfer_core::fleet::{Fleet, Served};
use flexinfer_core::openai::apis::Page;
use flexinfer_core::openai::lists::{Lists, Shape, Show, ollama_version};
use flexinfer_core::rejection::Rejection;
use pingora_proxy::Session;

use super::receive::announced_length;
use super::respond::Own;
use super::{Stop, read, resolve};
use crate::context::Context;
use crate::parts::Parts;

/// Sent by Anthropic's clients, whose list of models lies at the same path as OpenAI's.
const ANTHROPIC_VERSION: &str = "anthropic-version";

/// What `page` says to the caller; `name` is the model that the path names.
pub(crate) async fn answer(
    parts: &Parts,
    fleet: &Fleet,
    session: &mut Session,
    context: &Context,
    (page, name): (Page, String),
) -> Result<Own, Stop> {
    let caller = context.ruled.caller.as_deref();
    let allowed = resolve::allowed(caller);
    let anthropic = session.req_header().headers.contains_key(ANTHROPIC_VERSION);
    let shape = if anthropic { Shape::Anthropic } else { Shape::OpenAi };
    let lists = Lists {
        fleet,
        seen: |model: &Served| allowed.includes(model),
        liveness: |model: &Served| (parts.liveness)(model),
    };
    Ok(Own::json(match page {
        Page::Health => return Ok(Own::text(200, "ok")),
        Page::Readiness => {
            let (status, word) = parts.lifecycle.phase().readiness();
            return Ok(Own::text(status, word));
        }
        Page::Models => lists.models_list(shape),
        Page::Model => lists.model_object(&allowed.lookup(fleet, &name)?, shape),
        Page::OllamaTags => lists.ollama_tags(),
        Page::OllamaRunning => lists.ollama_running(),
        Page::OllamaVersion => ollama_version(),
        Page::OllamaShow => {
            let announced = announced_length(&session.req_header().headers);
            let body = read::read(parts, session, context, announced, None).await?;
            let body = body.ok_or(Rejection::ModelMissing)?;
            lists.ollama_show(&allowed.lookup(fleet, &Show::read(&body.received)?)?)
        }
    }))
}
