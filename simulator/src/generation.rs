//! One generation: waits for a slot, takes its time for the prompt, then gives token after token at the
//! set pace. Dropping it, as happens when the client leaves, frees the slot.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use crate::engine::{Engine, HeldTokens};
use crate::metrics::Ended;
use crate::random::Random;
use crate::slots::Slot;
use crate::words;

/// What is to be generated, whichever API asked for it.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) model: String,
    /// Everything the model reads; what the prefix cache sees.
    pub(crate) prompt: String,
    /// What each choice is about; there are as many choices as topics.
    pub(crate) topics: Vec<String>,
    pub(crate) limit: Option<usize>,
    pub(crate) stop: Vec<String>,
    /// Goes on to the limit instead of stopping at the end of the answer.
    pub(crate) ignores_end: bool,
    pub(crate) seed: u64,
    pub(crate) content: Content,
}

/// What kind of answer is wanted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    Words,
    Json(Value),
    ToolCall { name: String, arguments: Value },
}

/// Some text of one choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) choice: usize,
    pub(crate) text: String,
}

/// Why a choice ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// The answer is over.
    Stop,
    /// This stop sequence came.
    StopSequence(String),
    Length,
    ToolCall,
}

/// Tokens counted for the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) prompt: usize,
    pub(crate) held: usize,
    pub(crate) generated: usize,
}

/// A fault ended the generation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CutOff;

/// A generation under way.
#[derive(Debug)]
pub(crate) struct Generation {
    engine: Arc<Engine>,
    pub(crate) ask: Ask,
    coming: Vec<VecDeque<String>>,
    pub(crate) finishes: Vec<Finish>,
    pub(crate) usage: Usage,
    cut_after: Option<usize>,
    steps: usize,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    NotBegun,
    Running { due: Instant, _slot: Slot, _tokens: HeldTokens },
    Over,
}

impl Generation {
    /// Nothing happens before the first call of [`Generation::next`].
    pub(crate) fn new(engine: &Arc<Engine>, ask: Ask, cut_after: Option<usize>) -> Self {
        let topics = ask.topics.iter().enumerate();
        let (coming, finishes) =
            topics.map(|(choice, topic)| write_answer(engine, &ask, choice, topic)).unzip();
        let usage = Usage { prompt: words::count(&ask.prompt), ..Usage::default() };
        let engine = Arc::clone(engine);
        Self { engine, ask, coming, finishes, usage, cut_after, steps: 0, stage: Stage::NotBegun }
    }

    /// The next token of every choice that has one; nothing when all have ended.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Piece>>, CutOff> {
        match self.stage {
            Stage::NotBegun => self.begin().await,
            Stage::Running { ref mut due, .. } => {
                let pause = self.engine.settings.timings.token;
                if !pause.is_zero() && self.coming.iter().any(|choice| !choice.is_empty()) {
                    *due += pause;
                    tokio::time::sleep_until(*due).await;
                    self.engine.metrics.next_token(pause);
                }
            }
            Stage::Over => return Ok(None),
        }
        if self.cut_after.is_some_and(|after| self.steps >= after) {
            self.over(Ended::Aborted);
            return Err(CutOff);
        }
        self.steps += 1;
        let pieces: Vec<Piece> = (self.coming.iter_mut().enumerate())
            .filter_map(|(choice, coming)| Some(Piece { choice, text: coming.pop_front()? }))
            .collect();
        if pieces.is_empty() {
            let by_length = self.finishes.contains(&Finish::Length);
            self.over(if by_length { Ended::ByLength } else { Ended::Stopped });
            return Ok(None);
        }
        self.usage.generated += pieces.len();
        self.engine.metrics.generated(pieces.len());
        Ok(Some(pieces))
    }

    /// Runs on to the end, or to where a fault cuts it; returns the text of each choice.
    pub(crate) async fn run_to_end(&mut self) -> Vec<String> {
        let mut texts = vec![String::new(); self.coming.len()];
        while let Ok(Some(pieces)) = self.next().await {
            for piece in pieces {
                if let Some(text) = texts.get_mut(piece.choice) {
                    text.push_str(&piece.text);
                }
            }
        }
        texts
    }

    async fn begin(&mut self) {
        let asked = Instant::now();
        let slot = self.engine.slots.take().await;
        let tokens = words::tokens(words::beginning(&self.ask.prompt));
        self.usage.held = self.engine.prefix_cache.lock().visit(&tokens);
        self.engine.metrics.prompt(self.usage.prompt, self.usage.held);
        let held = self.engine.hold_tokens(self.usage.prompt);
        let timings = &self.engine.settings.timings;
        let fresh = u32::try_from(self.usage.prompt - self.usage.held).unwrap_or(u32::MAX);
        let prefill = timings.first_token + timings.prompt_token.saturating_mul(fresh);
        let due = Instant::now() + prefill;
        // The slot is in place before the wait, so that a client that leaves is counted as aborted.
        self.stage = Stage::Running { due, _slot: slot, _tokens: held };
        if !prefill.is_zero() {
            tokio::time::sleep_until(due).await;
        }
        self.engine.metrics.first_token(asked.elapsed());
    }

    fn over(&mut self, how: Ended) {
        self.stage = Stage::Over;
        self.engine.metrics.ended(how);
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        if matches!(self.stage, Stage::Running { .. }) {
            self.over(Ended::Aborted);
        }
    }
}

/// The tokens of one choice and why it ends.
fn write_answer(
    engine: &Engine,
    ask: &Ask,
    choice: usize,
    topic: &str,
) -> (VecDeque<String>, Finish) {
    let seed = engine.settings.seed.wrapping_add(ask.seed);
    let mut random = Random::from_parts(seed, &[&ask.model, &ask.prompt, &choice.to_string()]);
    let natural = engine.settings.answer_tokens;
    let (mut text, mut finish) = match &ask.content {
        Content::Words => {
            let wanted = if ask.ignores_end { ask.limit.unwrap_or(natural) } else { natural };
            (words::answer(&ask.model, topic, &mut random, wanted), Finish::Stop)
        }
        Content::Json(value) => (value.to_string(), Finish::Stop),
        Content::ToolCall { arguments, .. } => (arguments.to_string(), Finish::ToolCall),
    };
    if let Some(stop) = words::stop_at(&mut text, &ask.stop) {
        finish = Finish::StopSequence(stop);
    }
    let mut tokens: VecDeque<String> =
        words::tokens(&text).into_iter().map(str::to_owned).collect();
    if let Some(limit) = ask.limit
        && tokens.len() > limit
    {
        tokens.truncate(limit);
        finish = Finish::Length;
    }
    (tokens, finish)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::settings::{Settings, Timings};

    fn ask(prompt: &str) -> Ask {
        Ask {
            model: "m".into(),
            prompt: prompt.into(),
            topics: vec![prompt.into()],
            limit: Some(4),
            stop: Vec::new(),
            ignores_end: false,
            seed: 0,
            content: Content::Words,
        }
    }

    #[tokio::test]
    async fn equal_asks_are_answered_equally_and_other_seeds_otherwise() {
        let engine = Arc::new(Engine::new(Settings::default()));
        let long = Ask { limit: None, topics: vec!["me".into(); 2], ..ask("tell me") };
        let first = Generation::new(&engine, long.clone(), None).run_to_end().await;
        let again = Generation::new(&engine, long.clone(), None).run_to_end().await;
        assert_eq!(first, again);
        assert_ne!(first[0], first[1], "each choice says something else");
        let other = Generation::new(&engine, Ask { seed: 9, ..long }, None).run_to_end().await;
        assert_ne!(first, other);
    }

    #[tokio::test]
    async fn a_limit_ends_by_length_and_a_stop_ends_before_it() {
        let engine = Arc::new(Engine::new(Settings::default()));
        let mut limited = Generation::new(&engine, ask("hello"), None);
        limited.run_to_end().await;
        assert_eq!((limited.usage.generated, &limited.finishes[0]), (4, &Finish::Length));
        let stop = Ask { stop: vec![" thinking".into()], ..ask("hello") };
        let mut stopped = Generation::new(&engine, stop, None);
        assert!(stopped.run_to_end().await[0].starts_with("This is m"));
        assert_eq!(stopped.finishes[0], Finish::StopSequence(" thinking".into()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_prefix_cache_holds_costs_no_time() {
        let timings = Timings { prompt_token: Duration::from_millis(10), ..Timings::default() };
        let engine = Arc::new(Engine::new(Settings { timings, ..Settings::default() }));
        let prompt = "word ".repeat(160);
        let mut took = Vec::new();
        for _ in 0..2 {
            let begun = Instant::now();
            let mut generation = Generation::new(&engine, ask(&prompt), None);
            generation.next().await.unwrap();
            took.push((begun.elapsed(), generation.usage.held));
        }
        assert_eq!(took[0].1, 0);
        assert_eq!(took[1].1, 160);
        assert!(took[0].0 > took[1].0 + Duration::from_secs(1), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_generation_that_is_dropped_frees_its_slot() {
        let timings = Timings { token: Duration::from_secs(9), ..Timings::default() };
        let engine = Arc::new(Engine::new(Settings { slots: 1, timings, ..Settings::default() }));
        let mut first = Generation::new(&engine, ask("one"), None);
        first.next().await.unwrap();
        assert_eq!(engine.slots.running(), 1);
        drop(first);
        assert_eq!(engine.slots.running(), 0);
        assert!(Generation::new(&engine, ask("two"), None).next().await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_cut_comes_after_its_tokens() {
        let engine = Arc::new(Engine::new(Settings::default()));
        let mut generation = Generation::new(&engine, ask("hello"), Some(2));
        assert!(generation.next().await.unwrap().is_some());
        assert!(generation.next().await.unwrap().is_some());
        assert_eq!(generation.next().await, Err(CutOff));
    }
}
