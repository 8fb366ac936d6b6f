//! The settings of `run`: flags, with the original's variables where a flag is not given.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;

use clap::{ArgAction, Args};
use flexinfer_core::planning::objects::Settings;
use serde_json::{Map, Value, json};

use super::admission::Admission;
use super::benchmarks::Measuring;
use super::objects::Objects;

/// What the controller is started with.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// The namespace to look after, and the one of the lease
    #[arg(long, env = "POD_NAMESPACE", default_value = "default")]
    pub namespace: String,
    /// Look after every namespace
    #[arg(long, env = "FLEXINFER_ALL_NAMESPACES", default_value_t = false, action = ArgAction::Set,
        num_args = 0..=1, default_missing_value = "true")]
    pub all_namespaces: bool,
    /// Where metrics are: address and port, or 0 for none
    #[arg(long, env = "METRICS_BIND_ADDRESS", default_value = ":8080", value_name = "ADDRESS")]
    pub metrics_bind_address: Binding,
    /// Where health is: address and port, or 0 for none
    #[arg(
        long,
        env = "HEALTH_PROBE_BIND_ADDRESS",
        default_value = ":8081",
        value_name = "ADDRESS"
    )]
    pub health_probe_bind_address: Binding,
    /// Act only while holding the lease, so that several may run
    #[arg(long, env = "LEADER_ELECT", default_value_t = false, action = ArgAction::Set,
        num_args = 0..=1, default_missing_value = "true")]
    pub leader_elect: bool,
    /// How this controller calls itself in the lease
    #[arg(long, env = "POD_NAME", default_value = "flexinfer-controller")]
    pub pod_name: String,
    /// How many groups are looked at at once
    #[arg(long, env = "FLEXINFER_CONCURRENCY", default_value = "8")]
    pub concurrency: NonZeroUsize,
    #[command(flatten)]
    pub admission: Admission,
    #[command(flatten)]
    pub objects: Objects,
    #[command(flatten)]
    pub measuring: Measuring,
    /// Print the settings in force as JSON and end
    #[arg(long)]
    pub print_settings: bool,
}

impl Arguments {
    /// The namespace to watch; `None` for all.
    pub(crate) fn scope(&self) -> Option<&str> {
        (!self.all_namespaces).then_some(self.namespace.as_str())
    }

    /// As planning takes them.
    pub(crate) fn settings(&self) -> Settings {
        Settings { benchmarks: self.measuring.settings(&self.namespace), ..self.objects.settings() }
    }

    /// The settings in force, by the name of their flags.
    pub(crate) fn shown(&self) -> Map<String, Value> {
        let Self {
            namespace,
            all_namespaces,
            metrics_bind_address,
            health_probe_bind_address,
            leader_elect,
            pod_name,
            concurrency,
            admission,
            objects,
            measuring,
            print_settings: _,
        } = self;
        [
            ("namespace", json!(namespace)),
            ("all-namespaces", json!(all_namespaces)),
            ("metrics-bind-address", json!(metrics_bind_address.to_string())),
            ("health-probe-bind-address", json!(health_probe_bind_address.to_string())),
            ("leader-elect", json!(leader_elect)),
            ("pod-name", json!(pod_name)),
            ("concurrency", json!(concurrency)),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .chain(admission.shown())
        .chain(objects.shown())
        .chain(measuring.shown())
        .collect()
    }
}

/// Where a page is served, if anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding(pub Option<SocketAddr>);

impl std::str::FromStr for Binding {
    type Err = String;

    /// `:8080` is every address, and `0` is none, as other controllers write them.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "0" {
            return Ok(Self(None));
        }
        let every = |port: &str| {
            port.parse().ok().map(|port: u16| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)))
        };
        let address = text.strip_prefix(':').map_or_else(|| text.parse().ok(), every);
        address.map(|address| Self(Some(address))).ok_or_else(|| {
            "write an address and a port as in 0.0.0.0:8080, only a port as in :8080, or 0 for none"
                .to_owned()
        })
    }
}

impl std::fmt::Display for Binding {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(address) => write!(formatter, "{address}"),
            None => write!(formatter, "0"),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn settings(line: &[&str]) -> Arguments {
        Line::try_parse_from(std::iter::once(&"run").chain(line)).unwrap().arguments
    }

    #[test]
    fn pages_are_bound_as_the_original_writes_them() {
        let binding = |text: &str| text.parse::<Binding>().map(|found| found.to_string());
        assert_eq!(binding(":8080").as_deref(), Ok("0.0.0.0:8080"));
        assert_eq!(binding("127.0.0.1:0").as_deref(), Ok("127.0.0.1:0"));
        assert_eq!(binding("0").as_deref(), Ok("0"));
        assert!(binding("8080").unwrap_err().contains(":8080"));
    }

    #[test]
    fn a_switch_needs_no_value() {
        assert!(settings(&["--leader-elect"]).leader_elect);
        assert!(!settings(&["--leader-elect=false"]).leader_elect);
        assert_eq!(settings(&["--all-namespaces"]).scope(), None);
    }
}
