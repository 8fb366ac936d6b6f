//! The flags of `bench`, with the names and defaults of the original.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use flexinfer_crds::Duration;

/// The engine that the original takes where none is named.
const BACKEND: &str = "ollama";

/// What to measure, and for how long.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// The gateway
    #[arg(long, env = "PROXY_URL", value_name = "URL", default_value = "http://127.0.0.1:8080",
        value_parser = address)]
    pub url: String,
    /// Key for the gateway, where it asks for one
    #[arg(long, env = "PROXY_API_KEY", value_name = "KEY", hide_env_values = true)]
    pub api_key: Option<String>,
    /// The authorities (PEM) that the gateway's certificate may be signed by, in place of the system's
    #[arg(long, env = "PROXY_CA", value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// The model, as results are to be found by
    #[arg(long)]
    pub model: String,
    /// The name that requests ask for [default: --model]
    #[arg(long, value_name = "NAME")]
    pub model_name: Option<String>,
    /// The engine, as results are to be found by; with tei, embeddings are measured [default: what the gateway says that
    /// it is, else ollama]
    #[arg(long)]
    pub backend: Option<String>,
    /// What to ask for [default: embeddings for tei, else chat]
    #[arg(long)]
    pub operation: Option<Operation>,
    /// Requests before the measured ones
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    pub warmup_iterations: u32,
    /// Measure for this long at least
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    pub min_duration: Duration,
    /// Measure this many requests at least, of each that asks at once
    #[arg(long, value_name = "COUNT", default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: u32,
    /// Tokens to ask for with each request
    #[arg(long, value_name = "TOKENS", default_value_t = 128,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub batch_size: u32,
    /// Words of each prompt
    #[arg(long, value_name = "WORDS", default_value_t = 128)]
    pub prompt_words: u32,
    /// How long the model may take until it serves
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub cold_start_timeout: Duration,
    /// Requests at once; several numbers are measured one after another, as in 1,4,16
    #[arg(long, value_name = "COUNT", value_delimiter = ',', default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub concurrency: Vec<u32>,
    /// Name of this node, for the report
    #[arg(long, env = "NODE_NAME", value_name = "NAME")]
    pub node_name: Option<String>,
    /// Keep the result for the scheduler in this ConfigMap, and in `<name>-benchmark-results`
    #[arg(long, env = "BENCHMARK_RESULTS_CONFIGMAP", value_name = "NAME")]
    pub configmap: Option<String>,
    /// The namespace of the model
    #[arg(long, env = "POD_NAMESPACE", value_name = "NAME")]
    pub namespace: Option<String>,
    /// The namespace of that ConfigMap: the scheduler's [default: the model's]
    #[arg(long, env = "BENCHMARK_RESULTS_NAMESPACE", value_name = "NAME")]
    pub results_namespace: Option<String>,
    /// Note this with the result: a hash of what determines the speed, by which the controller sees whether it still
    /// holds
    #[arg(long, value_name = "HASH")]
    pub configuration: Option<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Operation {
    /// Answers, token by token
    Chat,
    /// Vectors
    Embeddings,
    /// Pictures
    Images,
}

impl Arguments {
    /// The name that requests ask for.
    pub(super) fn served_name(&self) -> &str {
        self.model_name.as_deref().unwrap_or(&self.model)
    }

    /// The engine, as it was named by whoever knows it.
    pub(super) fn backend(&self) -> &str {
        self.backend.as_deref().unwrap_or(BACKEND)
    }

    pub(super) fn operation(&self) -> Operation {
        let of_backend = match self.backend() {
            "tei" => Operation::Embeddings,
            _ => Operation::Chat,
        };
        self.operation.unwrap_or(of_backend)
    }
}

/// A URL that can be asked: what nothing can come of is not waited for.
fn address(text: &str) -> Result<String, String> {
    let url = reqwest::Url::parse(text).ok();
    let good = url.is_some_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    good.then(|| text.to_owned()).ok_or_else(|| "write it as http://host:port".to_owned())
}
