//! What engines call the numbers that routing and autoscaling read from their metrics page.

/// The names of an engine's Prometheus metrics; each lists newer names first, and is empty where
/// the engine does not measure it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricNames {
    /// The path of the page.
    pub path: &'static str,
    /// Requests being worked on.
    pub running: &'static [&'static str],
    /// Requests waiting inside the engine.
    pub waiting: &'static [&'static str],
    /// The share of the KV cache in use, 0 to 1.
    pub kv_cache_usage: &'static [&'static str],
    /// Tokens found in the prefix cache, counted up.
    pub prefix_hits: &'static [&'static str],
    /// Tokens looked up in the prefix cache, counted up.
    pub prefix_queries: &'static [&'static str],
    /// Tokens generated, counted up.
    pub generated_tokens: &'static [&'static str],
}

/// vLLM's names, which the simulator speaks too. The docs write counters without `_total`, which the
/// page adds.
pub(super) const VLLM: MetricNames = MetricNames {
    path: "/metrics",
    running: &["vllm:num_requests_running"],
    waiting: &["vllm:num_requests_waiting"],
    kv_cache_usage: &["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"],
    prefix_hits: &["vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"],
    prefix_queries: &["vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"],
    generated_tokens: &["vllm:generation_tokens_total"],
};
