//! How one simulated engine behaves. Every field is public: a test starts from the default, which is
//! an engine that is ready at once and answers without delay, and changes what it is about.

use std::path::PathBuf;
use std::time::Duration;

use crate::faults::{AnswerFaults, LoadingFaults};

/// One simulated engine.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Address to listen on; default `127.0.0.1`.
    pub host: String,
    /// Port to listen on; default 0, a free one.
    pub port: u16,
    /// Names the engine answers to, the first being its own; default `simulated`.
    pub models: Vec<String>,
    /// A file or folder that is really read while loading; none by default.
    pub model_path: Option<PathBuf>,
    /// Added to whatever an answer is made from; default 0.
    pub seed: u64,
    /// How long the engine takes.
    pub timings: Timings,
    /// Requests that generate at once; more wait, as in vLLM. Default 256.
    pub slots: usize,
    /// Tokens of an answer that is not limited by its request; default 48.
    pub answer_tokens: usize,
    /// Tokens that prompt and answer may have together; default 1,073,741,824, more than any test sends.
    pub context_window: usize,
    /// Blocks of 16 tokens that the prefix cache holds; default 4,096. 0 switches it off.
    pub prefix_cache_blocks: usize,
    /// What goes wrong while loading; nothing by default.
    pub loading_faults: LoadingFaults,
    /// What goes wrong while answering; nothing by default.
    pub answer_faults: AnswerFaults,
    /// Requests may ask for faults by `x-simulate-*` headers; default true in-process.
    pub request_faults: bool,
    /// Requests are kept for the test to read; default true in-process.
    pub request_log: bool,
    /// A connection without a request is closed after so long; by default it stays open.
    pub keep_alive: Option<Duration>,
    /// Progress and the address go to standard output; default false in-process.
    pub announces: bool,
}

/// How long an engine takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timings {
    /// From the start until ready; with a model path reading takes at least this long.
    pub load: Duration,
    /// From having a slot to the first token, prompt apart.
    pub first_token: Duration,
    /// From one token to the next.
    pub token: Duration,
    /// Added to the first token for each prompt token that the prefix cache does not hold.
    pub prompt_token: Duration,
    /// One step of making a picture.
    pub image_step: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            load: Duration::ZERO,
            first_token: Duration::ZERO,
            token: Duration::ZERO,
            prompt_token: Duration::ZERO,
            image_step: Duration::ZERO,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 0,
            models: vec!["simulated".to_owned()],
            model_path: None,
            seed: 0,
            timings: Timings::default(),
            slots: 256,
            answer_tokens: 48,
            context_window: 1 << 30,
            prefix_cache_blocks: 4_096,
            loading_faults: LoadingFaults::default(),
            answer_faults: AnswerFaults::default(),
            request_faults: true,
            request_log: true,
            keep_alive: None,
            announces: false,
        }
    }
}

impl Settings {
    /// The default engine under another name.
    pub fn named(model: &str) -> Self {
        Self { models: vec![model.to_owned()], ..Self::default() }
    }
}
