//! What every API starts from: the request, the engine, and the faults of this turn; and the questions
//! that every API asks first.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::extract::FromRequest;
use bytes::Bytes;
use http::{HeaderMap, Request};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::refusal::Refusal;
use crate::engine::{Engine, Phase};
use crate::faults::{AnswerFaults, Busy};
use crate::generation::{Ask, Content, Generation};
use crate::wire::WireFaults;

/// What may go wrong with the answer to one request.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub(crate) faults: AnswerFaults,
    pub(crate) wire: Arc<WireFaults>,
}

/// One request to an API.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) engine: Arc<Engine>,
    pub(crate) turn: Turn,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl FromRequest<Arc<Engine>> for Call {
    type Rejection = Refusal;

    async fn from_request(
        request: Request<Body>,
        engine: &Arc<Engine>,
    ) -> Result<Self, Self::Rejection> {
        let (head, body) = request.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX)
            .await
            .map_err(|_| Refusal::bad_request("the body ended before its end"))?;
        let turn = head
            .extensions
            .get::<Turn>()
            .cloned()
            .unwrap_or_else(|| Turn { faults: engine.faults(), wire: Arc::default() });
        Ok(Self { engine: Arc::clone(engine), turn, headers: head.headers, body })
    }
}

impl Call {
    /// Refuses what a loading or busy engine refuses.
    pub(crate) fn admit(&self) -> Result<(), Refusal> {
        if let Phase::Loading(_) = *self.engine.phase.borrow() {
            return Err(Refusal::Loading);
        }
        match self.turn.faults.busy {
            None => Ok(()),
            Some(Busy::Unavailable) => Err(Refusal::Unavailable),
            Some(Busy::TooManyRequests) => Err(Refusal::TooManyRequests),
        }
    }

    /// The body as JSON of this shape; of keys that come twice the last one counts, as in vLLM.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        let value: Value = serde_json::from_slice(&self.body)
            .map_err(|error| Refusal::bad_request(&format!("the body is not JSON: {error}")))?;
        serde_json::from_value(value).map_err(|error| Refusal::bad_request(&error.to_string()))
    }

    /// The model that is asked for: the engine's own when the request names none.
    pub(crate) fn model(&self, asked: Option<&str>) -> Result<String, Refusal> {
        match asked {
            None => Ok(self.engine.own_name().to_owned()),
            Some(name) if self.engine.answers_to(name) => Ok(name.to_owned()),
            Some(name) => Err(Refusal::NoSuchModel(name.to_owned())),
        }
    }

    /// A generation that fits into the context window.
    pub(crate) fn generate(&self, ask: Ask) -> Result<Generation, Refusal> {
        let window = self.engine.settings.context_window;
        let limit = ask.limit;
        let generation = Generation::new(&self.engine, ask, self.turn.faults.cut_after_tokens);
        let prompt = generation.usage.prompt;
        if prompt.saturating_add(limit.unwrap_or(1)) > window {
            return Err(Refusal::TooLong { window, prompt, limit: limit.unwrap_or(1) });
        }
        Ok(generation)
    }

    /// Reads texts without answering in tokens, as embeddings need it: takes a slot for as long as a
    /// first token takes. Returns the tokens read.
    pub(crate) async fn read(&self, texts: &[String]) -> Result<usize, Refusal> {
        let ask = Ask {
            model: self.engine.own_name().to_owned(),
            prompt: texts.join("\n"),
            topics: vec![String::new()],
            limit: Some(1),
            stop: Vec::new(),
            ignores_end: false,
            seed: 0,
            content: Content::Words,
        };
        let mut generation = self.generate(ask)?;
        generation.run_to_end().await;
        Ok(generation.usage.prompt)
    }

    /// A new id; equal engines give the same ids in the same order.
    pub(crate) fn id(&self, prefix: &str) -> String {
        format!("{prefix}{:016x}", self.engine.next_number())
    }
}

/// Seconds since 1970, as answers carry them.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
