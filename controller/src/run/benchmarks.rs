//! The settings of the Jobs that measure models.

use clap::Args;
use flexinfer_core::planning::objects::{Benchmarks, SecretKey};
use flexinfer_crds::keys;
use serde_json::{Map, Value, json};

/// The keys of Secrets whose names stand alone.
const KEY: &str = "token";
const AUTHORITIES: &str = "ca.crt";

/// How models are measured that ask for it.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Benchmarks")]
pub struct Measuring {
    /// The service account of benchmarks' pods, in the namespace of each model; without one nothing
    /// is measured
    #[arg(long, env = "BENCHMARK_SERVICE_ACCOUNT", value_name = "NAME")]
    pub benchmark_service_account: Option<String>,
    /// The gateway that benchmarks ask through; without one nothing is measured
    #[arg(long, env = "PROXY_URL", value_name = "URL")]
    pub proxy_url: Option<String>,
    /// The Secret, and the key in it, with what the gateway asks benchmarks for, in the namespace
    /// of each model; the key is `token` where none is named
    #[arg(long, env = "BENCHMARK_API_KEY_SECRET", value_name = "NAME[/KEY]")]
    pub benchmark_api_key_secret: Option<String>,
    /// The Secret, and the key in it, with the authorities (PEM) that the gateway's certificate may be signed by, in
    /// the namespace of each model; the key is `ca.crt` where none is named [default: the system's]
    #[arg(long, env = "BENCHMARK_CA_SECRET", value_name = "NAME[/KEY]")]
    pub benchmark_ca_secret: Option<String>,
    /// The ConfigMap of all results, in this controller's namespace
    #[arg(long, env = "BENCHMARK_RESULTS_CONFIGMAP", value_name = "NAME",
        default_value = keys::BENCHMARK_RESULTS)]
    pub benchmark_results: String,
}

impl Measuring {
    /// As planning takes them; results are in `namespace`.
    pub(super) fn settings(&self, namespace: &str) -> Benchmarks {
        let written = |text: &Option<String>| {
            let text = text.as_deref().map(str::trim).filter(|text| !text.is_empty());
            text.map(str::to_owned)
        };
        let entry = |text: &Option<String>, usual| {
            let text = written(text)?;
            let (name, key) = text.split_once('/').unwrap_or((&text, usual));
            Some(SecretKey { name: name.to_owned(), key: key.to_owned() })
        };
        Benchmarks {
            service_account: written(&self.benchmark_service_account),
            gateway: written(&self.proxy_url),
            key: entry(&self.benchmark_api_key_secret, KEY),
            ca: entry(&self.benchmark_ca_secret, AUTHORITIES),
            results: self.benchmark_results.clone(),
            results_namespace: namespace.to_owned(),
        }
    }

    /// The settings in force. Where a key is may be shown; the key itself is not known here.
    pub(super) fn shown(&self) -> Map<String, Value> {
        let Self {
            benchmark_service_account,
            proxy_url,
            benchmark_api_key_secret,
            benchmark_ca_secret,
            benchmark_results,
        } = self;
        [
            ("benchmark-service-account", json!(benchmark_service_account)),
            ("proxy-url", json!(proxy_url)),
            ("benchmark-api-key-secret", json!(benchmark_api_key_secret)),
            ("benchmark-ca-secret", json!(benchmark_ca_secret)),
            ("benchmark-results", json!(benchmark_results)),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        measuring: Measuring,
    }

    fn settings(line: &[&str]) -> Benchmarks {
        let line = Line::try_parse_from(std::iter::once(&"run").chain(line)).unwrap();
        line.measuring.settings("flexinfer")
    }

    #[test]
    fn what_is_set_to_nothing_is_not_set() {
        let empty = settings(&["--benchmark-service-account=", "--proxy-url= "]);
        let results_namespace = "flexinfer".to_owned();
        assert_eq!(empty, Benchmarks { results_namespace, ..Benchmarks::default() });
    }

    #[test]
    fn a_secret_may_name_its_key() {
        let key = |text: &str| settings(&["--benchmark-api-key-secret", text]).key.unwrap();
        assert_eq!(key("callers"), SecretKey { name: "callers".into(), key: "token".into() });
        assert_eq!(key("callers/bench"), SecretKey { name: "callers".into(), key: "bench".into() });
        let ca = settings(&["--benchmark-ca-secret", "gateway-tls"]).ca.unwrap();
        assert_eq!(ca, SecretKey { name: "gateway-tls".into(), key: "ca.crt".into() });
    }
}
