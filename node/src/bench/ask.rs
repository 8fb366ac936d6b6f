//! One request through the gateway, timed as whoever asks sees it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flexinfer_core::measuring::Sample;
use flexinfer_core::openai::{Usage, UsageReader};
use reqwest::{Response, header};
use serde_json::{Value, json};

use super::arguments::{Arguments, Operation};
use super::client;
use super::events::Events;

/// A refusal is told with no more of its text than this.
const LONGEST_REFUSAL: usize = 400;

/// Why there is no sample.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    #[error("{url} cannot be asked; check --url (PROXY_URL)")]
    Unreachable { url: String, source: reqwest::Error },
    #[error("the answer was {status}: {text}")]
    Refused { status: u16, retry_after: Option<Duration>, text: String },
    #[error("the answer broke off")]
    BrokenOff(#[source] reqwest::Error),
    #[error("the answer ended without `usage`; only engines that count tokens can be measured")]
    NoUsage,
    #[error("the answer is not what was asked for")]
    Strange(#[from] serde_json::Error),
}

/// What all requests of a run have in common.
pub(super) struct Asking {
    client: reqwest::Client,
    url: String,
    key: Option<String>,
    model: String,
    operation: Operation,
    tokens: u32,
    prompt_words: u32,
    asked: AtomicU64,
}

impl Asking {
    pub(super) fn new(arguments: &Arguments) -> anyhow::Result<Self> {
        let operation = arguments.operation();
        let path = match operation {
            Operation::Chat => "v1/chat/completions",
            Operation::Embeddings => "v1/embeddings",
            Operation::Images => "v1/images/generations",
        };
        Ok(Self {
            client: client::client(arguments.ca.as_deref())?,
            url: format!("{}/{path}", arguments.url.trim_end_matches('/')),
            key: arguments.api_key.clone(),
            model: arguments.served_name().to_owned(),
            operation,
            tokens: arguments.batch_size,
            prompt_words: arguments.prompt_words,
            asked: AtomicU64::new(0),
        })
    }

    /// The name that is asked for.
    pub(super) fn model(&self) -> &str {
        &self.model
    }

    /// Asks once, for as much as is measured.
    pub(super) async fn ask(&self) -> Result<Sample, AskError> {
        self.ask_for(self.tokens).await
    }

    /// Asks once, for `tokens` of answer.
    pub(super) async fn ask_for(&self, tokens: u32) -> Result<Sample, AskError> {
        let begun = Instant::now();
        let mut request = self.client.post(&self.url).json(&self.body(tokens));
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        let sent = request.send().await;
        let response =
            sent.map_err(|source| AskError::Unreachable { url: self.url.clone(), source })?;
        if !response.status().is_success() {
            return Err(refusal(response).await);
        }
        match self.operation {
            Operation::Images => images(response, begun).await,
            operation => text(response, begun, operation).await,
        }
    }

    fn body(&self, tokens: u32) -> Value {
        let (model, prompt) = (&self.model, self.prompt());
        match self.operation {
            Operation::Chat => json!({
                "model": model,
                "messages": [{"role": "user", "content": prompt}],
                "max_tokens": tokens,
                // Known to vLLM, llama.cpp and others; whoever does not know it may end sooner.
                "ignore_eos": true,
                "temperature": 0,
                "stream": true,
                "stream_options": {"include_usage": true},
            }),
            Operation::Embeddings => json!({"model": model, "input": prompt}),
            Operation::Images => json!({"model": model, "prompt": prompt, "n": 1}),
        }
    }

    /// A prompt that no earlier one begins like: an engine that has it in its cache would seem to
    /// read faster than it does.
    fn prompt(&self) -> String {
        const WORDS: [&str; 8] =
            ["river", "copper", "seven", "window", "quiet", "engine", "garden", "north"];
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let words = WORDS.iter().cycle().take(self.prompt_words as usize);
        let words = words.copied().collect::<Vec<_>>().join(" ");
        format!("{number} {} Tell a long story with these words: {words}", std::process::id())
    }
}

async fn refusal(response: Response) -> AskError {
    let status = response.status().as_u16();
    let after = response.headers().get(header::RETRY_AFTER);
    let after = after.and_then(|after| after.to_str().ok()?.parse().ok());
    let text = response.text().await.unwrap_or_default();
    let text = text.trim().chars().take(LONGEST_REFUSAL).collect();
    AskError::Refused { status, retry_after: after.map(Duration::from_secs), text }
}

/// Reads an answer that counts its tokens.
async fn text(
    mut response: Response,
    begun: Instant,
    operation: Operation,
) -> Result<Sample, AskError> {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).map(str::to_owned);
    let streamed = kind.as_deref().is_some_and(|kind| kind.starts_with("text/event-stream"));
    let mut reader = UsageReader::for_answer(kind.as_deref(), None).ok_or(AskError::NoUsage)?;
    let mut events = Events::default();
    let mut first_token = None;
    while let Some(part) = response.chunk().await.map_err(AskError::BrokenOff)? {
        reader.look(&part);
        if streamed && first_token.is_none() && events.has_text(&part) {
            first_token = Some(begun.elapsed());
        }
    }
    let whole = begun.elapsed();
    let Usage { prompt_tokens, completion_tokens, cached_tokens, .. } = reader.usage();
    let prompt_tokens = prompt_tokens.ok_or(AskError::NoUsage)?;
    let completion_tokens = match operation {
        // Vectors are no tokens: what is counted is what was read.
        Operation::Embeddings => prompt_tokens,
        Operation::Chat | Operation::Images => completion_tokens.ok_or(AskError::NoUsage)?,
    };
    Ok(Sample {
        prompt_tokens: prompt_tokens.saturating_sub(cached_tokens.unwrap_or_default()),
        completion_tokens,
        images: 0,
        first_token,
        whole,
    })
}

async fn images(response: Response, begun: Instant) -> Result<Sample, AskError> {
    #[derive(serde::Deserialize)]
    struct Pictures {
        data: Vec<serde::de::IgnoredAny>,
    }
    let body = response.bytes().await.map_err(AskError::BrokenOff)?;
    let whole = begun.elapsed();
    let images = serde_json::from_slice::<Pictures>(&body)?.data.len() as u64;
    Ok(Sample { prompt_tokens: 0, completion_tokens: 0, images, first_token: None, whole })
}
