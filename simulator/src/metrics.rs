//! What the engine counts, shown under vLLM's names, so that whatever reads a vLLM engine reads this one.

use std::fmt::{Display, Write as _};
use std::time::Duration;

use parking_lot::Mutex;

/// Upper bounds of the first-token histogram in seconds, as vLLM has them.
const FIRST_TOKEN_BOUNDS: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
];
/// Upper bounds of the histogram of the time between tokens in seconds, as vLLM has them.
const TOKEN_BOUNDS: &[f64] = &[
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0,
];

/// Counters of one engine.
#[derive(Debug)]
pub(crate) struct Metrics {
    counted: Mutex<Counted>,
}

#[derive(Debug)]
struct Counted {
    prompt_tokens: u64,
    generated_tokens: u64,
    prefix_queries: u64,
    prefix_hits: u64,
    stopped: u64,
    cut_by_length: u64,
    aborted: u64,
    first_token: Histogram,
    token: Histogram,
}

#[derive(Debug)]
struct Histogram {
    bounds: &'static [f64],
    counts: Vec<u64>,
    sum: f64,
    total: u64,
}

/// What is true at this moment.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Gauges {
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    /// Share of the key-value cache in use, from 0 to 1.
    pub(crate) cache_usage: f64,
    pub(crate) cache_blocks: usize,
    pub(crate) adapters: Vec<String>,
}

/// How a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Stopped,
    ByLength,
    Aborted,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        Self {
            counted: Mutex::new(Counted {
                prompt_tokens: 0,
                generated_tokens: 0,
                prefix_queries: 0,
                prefix_hits: 0,
                stopped: 0,
                cut_by_length: 0,
                aborted: 0,
                first_token: Histogram::new(FIRST_TOKEN_BOUNDS),
                token: Histogram::new(TOKEN_BOUNDS),
            }),
        }
    }

    pub(crate) fn prompt(&self, tokens: usize, held: usize) {
        let mut counted = self.counted.lock();
        counted.prompt_tokens += tokens as u64;
        counted.prefix_queries += tokens as u64;
        counted.prefix_hits += held as u64;
    }

    pub(crate) fn first_token(&self, after: Duration) {
        self.counted.lock().first_token.observe(after);
    }

    pub(crate) fn next_token(&self, after: Duration) {
        self.counted.lock().token.observe(after);
    }

    pub(crate) fn generated(&self, tokens: usize) {
        self.counted.lock().generated_tokens += tokens as u64;
    }

    pub(crate) fn ended(&self, how: Ended) {
        let mut counted = self.counted.lock();
        match how {
            Ended::Stopped => counted.stopped += 1,
            Ended::ByLength => counted.cut_by_length += 1,
            Ended::Aborted => counted.aborted += 1,
        }
    }

    pub(crate) fn generated_tokens(&self) -> u64 {
        self.counted.lock().generated_tokens
    }

    /// The page in Prometheus' text format.
    pub(crate) fn page(&self, model: &str, gauges: &Gauges) -> String {
        let counted = self.counted.lock();
        let mut page = Page { text: String::new(), label: format!("model_name={model:?}") };
        page.gauge("vllm:num_requests_running", "Requests that generate.", gauges.running);
        page.gauge("vllm:num_requests_waiting", "Requests that wait.", gauges.waiting);
        for name in ["vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc"] {
            page.gauge(name, "Share of the key-value cache in use, 1 is all.", gauges.cache_usage);
        }
        for (name, help, value) in [
            ("vllm:prefix_cache_queries", "Prompt tokens looked up.", counted.prefix_queries),
            ("vllm:prefix_cache_hits", "Prompt tokens found.", counted.prefix_hits),
            ("vllm:prompt_tokens", "Prompt tokens processed.", counted.prompt_tokens),
            ("vllm:generation_tokens", "Tokens generated.", counted.generated_tokens),
        ] {
            page.counter(name, help, value);
        }
        page.ends(&counted);
        page.histogram("vllm:time_to_first_token_seconds", &counted.first_token);
        page.histogram("vllm:time_per_output_token_seconds", &counted.token);
        page.settings(gauges);
        page.text
    }
}

impl Histogram {
    fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len()], sum: 0.0, total: 0 }
    }

    fn observe(&mut self, value: Duration) {
        let seconds = value.as_secs_f64();
        self.sum += seconds;
        self.total += 1;
        for (bound, count) in self.bounds.iter().zip(&mut self.counts) {
            *count += u64::from(seconds <= *bound);
        }
    }
}

/// Writing to a String cannot fail, so the results of `write!` are not looked at.
struct Page {
    text: String,
    label: String,
}

impl Page {
    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, help, "gauge");
        let _ = writeln!(self.text, "{name}{{{}}} {value}", self.label);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(&format!("{name}_total"), help, "counter");
        let _ = writeln!(self.text, "{name}_total{{{}}} {value}", self.label);
    }

    fn ends(&mut self, counted: &Counted) {
        let name = "vllm:request_success_total";
        self.head(name, "Requests by how they ended.", "counter");
        for (reason, count) in [
            ("stop", counted.stopped),
            ("length", counted.cut_by_length),
            ("abort", counted.aborted),
        ] {
            let label = &self.label;
            let _ = writeln!(self.text, "{name}{{finished_reason={reason:?},{label}}} {count}");
        }
    }

    fn histogram(&mut self, name: &str, histogram: &Histogram) {
        self.head(name, "Seconds.", "histogram");
        let label = &self.label;
        for (bound, count) in histogram.bounds.iter().zip(&histogram.counts) {
            let _ = writeln!(self.text, "{name}_bucket{{le=\"{bound:?}\",{label}}} {count}");
        }
        let _ = writeln!(self.text, "{name}_bucket{{le=\"+Inf\",{label}}} {}", histogram.total);
        let _ = writeln!(self.text, "{name}_sum{{{label}}} {}", histogram.sum);
        let _ = writeln!(self.text, "{name}_count{{{label}}} {}", histogram.total);
    }

    fn settings(&mut self, gauges: &Gauges) {
        let name = "vllm:cache_config_info";
        self.head(name, "Size of the key-value cache.", "gauge");
        let _ = writeln!(
            self.text,
            "{name}{{block_size=\"16\",num_gpu_blocks=\"{}\"}} 1",
            gauges.cache_blocks
        );
        let name = "vllm:lora_requests_info";
        self.head(name, "Adapters that are loaded.", "gauge");
        let adapters = gauges.adapters.join(",");
        let _ = writeln!(self.text, "{name}{{running_lora_adapters={adapters:?}}} 1");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_carries_vllm_names_and_counts() {
        let metrics = Metrics::new();
        metrics.prompt(40, 32);
        metrics.first_token(Duration::from_millis(30));
        metrics.generated(5);
        metrics.ended(Ended::ByLength);
        let page = metrics.page("llama", &Gauges { running: 2, waiting: 1, ..Gauges::default() });
        for line in [
            "vllm:num_requests_running{model_name=\"llama\"} 2",
            "vllm:num_requests_waiting{model_name=\"llama\"} 1",
            "vllm:prefix_cache_hits_total{model_name=\"llama\"} 32",
            "vllm:prefix_cache_queries_total{model_name=\"llama\"} 40",
            "vllm:generation_tokens_total{model_name=\"llama\"} 5",
            "vllm:request_success_total{finished_reason=\"length\",model_name=\"llama\"} 1",
            "vllm:time_to_first_token_seconds_bucket{le=\"0.02\",model_name=\"llama\"} 0",
            "vllm:time_to_first_token_seconds_bucket{le=\"0.04\",model_name=\"llama\"} 1",
        ] {
            assert!(page.contains(line), "{line} is missing in\n{page}");
        }
    }
}
