//! The results, for people and for programs.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use flexinfer_core::measuring::Spread;
use flexinfer_core::placement::benchmarks::{Measured, Method};
use serde::Serialize;

use super::arguments::Arguments;
use super::sweep::Level;

const HEADS: [&str; 10] = [
    "at once",
    "answers",
    "failed",
    "tokens/s",
    "decode/s",
    "prefill/s",
    "first p50",
    "first p95",
    "whole p50",
    "images/min",
];

#[derive(Debug, Serialize)]
pub(super) struct Report {
    model: String,
    /// The name that was asked for.
    model_name: String,
    backend: String,
    node: Option<String>,
    /// The nodes that served it, where that was looked up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    serving_nodes: Vec<String>,
    /// From the first request to the first answer.
    load_seconds: f64,
    warmup_iterations: u32,
    iterations: u32,
    batch_size: u32,
    min_duration: String,
    /// When it ended: RFC 3339, UTC.
    timestamp: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<String>,
    levels: Vec<Level>,
}

impl Report {
    pub(super) fn new(
        arguments: &Arguments,
        model_name: &str,
        woken: Duration,
        levels: Vec<Level>,
    ) -> Self {
        let now = jiff::Timestamp::now();
        Self {
            model: arguments.model.clone(),
            model_name: model_name.to_owned(),
            backend: arguments.backend().to_owned(),
            node: arguments.node_name.clone(),
            serving_nodes: Vec::new(),
            load_seconds: woken.as_secs_f64(),
            warmup_iterations: arguments.warmup_iterations,
            iterations: arguments.iterations,
            batch_size: arguments.batch_size,
            min_duration: arguments.min_duration.to_string(),
            timestamp: now.round(jiff::Unit::Second).unwrap_or(now).to_string(),
            configuration: arguments.configuration.clone(),
            levels,
        }
    }

    /// The result that is kept: the first level's, as the original measured one request after another. None where a
    /// request failed: once kept, it would not be measured again.
    pub(super) fn result(&self) -> anyhow::Result<(Measured, Method)> {
        let level = self.levels.first().context("nothing was measured")?;
        let summary = &level.summary;
        ensure!(
            level.failed == 0,
            "{} of {} requests failed; measure it again",
            level.failed,
            level.failed + summary.samples
        );
        let measured = Measured {
            tokens_per_second: summary.tokens_per_second,
            completion_tokens: summary.completion_tokens,
            duration_seconds: summary.duration_seconds,
            samples: summary.samples,
            latency_ms: summary.whole_seconds.map(|spread| spread.mean * 1000.0),
            timestamp: self.timestamp.clone(),
            configuration: self.configuration.clone(),
        };
        let method = Method {
            warmup_iterations: self.warmup_iterations.into(),
            iterations: self.iterations.into(),
            batch_size: self.batch_size.into(),
            min_duration: self.min_duration.clone(),
        };
        Ok((measured, method))
    }

    /// Says which nodes served the model, where that is known.
    pub(super) fn served_by(&mut self, nodes: &[String]) {
        self.serving_nodes = nodes.to_vec();
    }

    /// One JSON object.
    pub(super) fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    /// A table, one row for each level.
    pub(super) fn table(&self) -> String {
        let mut text = format!(
            "{} ({}), first answer after {:.2} s\n\n",
            self.model_name, self.backend, self.load_seconds
        );
        row(&mut text, &HEADS.map(str::to_owned));
        for level in &self.levels {
            row(&mut text, &cells(level));
        }
        text.truncate(text.trim_end().len());
        text
    }
}

fn cells(level: &Level) -> [String; HEADS.len()] {
    let summary = &level.summary;
    let first = summary.first_token_seconds;
    [
        level.concurrency.to_string(),
        summary.samples.to_string(),
        level.failed.to_string(),
        number(Some(summary.tokens_per_second).filter(|rate| *rate > 0.0)),
        number(summary.decode_tokens_per_second),
        number(summary.prefill_tokens_per_second),
        time(first, |spread| spread.median),
        time(first, |spread| spread.p95),
        time(summary.whole_seconds, |spread| spread.median),
        number(summary.images_per_minute),
    ]
}

fn row(text: &mut String, cells: &[String]) {
    for cell in cells {
        let _infallible = write!(text, "{cell:>11}");
    }
    text.push('\n');
}

fn number(number: Option<f64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| format!("{number:.1}"))
}

fn time(spread: Option<Spread>, pick: impl Fn(Spread) -> f64) -> String {
    spread.map_or_else(|| "-".to_owned(), |spread| format!("{:.3} s", pick(spread)))
}
