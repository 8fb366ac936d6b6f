//! How this process runs: flags, with the environment where a flag is not given. The only place that
//! reads the environment, which is passed in; every complaint is told at once.

mod cluster;
mod command_line;
mod local;
mod pairs;
mod reader;
#[cfg(test)]
mod reference;
mod routing;
mod rules;
mod size;
#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use flexinfer_core::queueing::{Backoff, Policy};
use flexinfer_core::routing::LabelRouting;
use flexinfer_telemetry::log;
use flexinfer_telemetry::traces;
use serde_json::Value;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

pub use cluster::{ClusterSettings, Scope};
pub use command_line::{
    ClusterArguments, Command, CommandLine, EngineArguments, KubernetesArguments, LocalArguments,
    ServeArguments,
};
pub use local::LocalSettings;
pub use reader::{Complaints, Shown};
pub use routing::RoutingArguments;
pub use rules::{RuleArguments, RuleSettings, SecretsOf};
pub use size::{Size, SizeError};

use reader::Reader;

use crate::parts::Limits;
use crate::server::Patience;
use crate::tls::TlsFiles;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;
const SECOND: Duration = Duration::from_secs(1);
/// A packet's way to another continent and back.
const STALE: Duration = Duration::from_millis(250);

/// The settings that are in force on both platforms, as types.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where requests come in.
    pub listen: SocketAddr,
    /// Where metrics, health and debug pages are.
    pub admin_listen: SocketAddr,
    /// Where the certificate for TLS to clients is; without it they speak plain HTTP.
    pub tls: Option<TlsFiles>,
    /// Threads that serve requests.
    pub threads: usize,
    /// How log lines look.
    pub log_format: log::Format,
    /// Which log lines are written.
    pub log_level: Targets,
    /// Whether spans are told, and in whose name.
    pub traces: traces::Arguments,
    /// The bounds of the request path.
    pub limits: Limits,
    /// Who may send how much.
    pub rules: RuleSettings,
    /// How requests for a service label are spread over its models.
    pub label_routing: LabelRouting,
    /// The bytes of all bodies held at once.
    pub max_buffered_bytes: u64,
    /// How patient queues are.
    pub queue: Policy,
    /// How patient a stop is.
    pub patience: Patience,
    /// Every setting in force, by the name of its flag; secrets are masked.
    pub shown: Shown,
}

/// What differs between the platforms where nothing is set.
struct Defaults {
    address: Ipv4Addr,
    log_format: log::Format,
    drain_delay: Duration,
}

impl Settings {
    fn read<E: Fn(&str) -> Option<String>>(
        read: &mut Reader<'_, E>,
        arguments: &ServeArguments,
        defaults: &Defaults,
    ) -> Self {
        let address = defaults.address;
        let listen = read.address("listen", arguments.listen.as_deref(), (address, 8080));
        let port = read.optional_port("port", arguments.port.as_deref());
        let listen = port.map_or(listen, |port| SocketAddr::new(listen.ip(), port));
        read.show("listen", listen.to_string());
        let admin = arguments.admin_listen.as_deref();
        let format = arguments.log_format.as_deref();
        let buffered = arguments.max_buffered_bytes.as_deref();
        let tls = tls(read, arguments);
        let mut rules = RuleSettings::read(read, &arguments.rules);
        if listen.ip().is_loopback() && tls.is_none() && !rules.authenticate {
            // A page gets by no certificate, and has no key: only without both its name has to tell.
            rules.hosts.get_or_insert_default();
        }
        Self {
            listen,
            admin_listen: read.address("admin-listen", admin, (address, 9090)),
            tls,
            threads: read.count("threads", arguments.threads.as_deref(), processors(), 1..=1024),
            log_format: read.choice("log-format", format, defaults.log_format),
            log_level: read.level("log-level", arguments.log_level.as_deref(), LevelFilter::INFO),
            traces: traces(read, arguments),
            limits: limits(read, arguments),
            rules,
            label_routing: read.choice(
                "label-routing",
                arguments.label_routing.as_deref(),
                LabelRouting::RoundRobin,
            ),
            max_buffered_bytes: read.size("max-buffered-bytes", buffered, GIB),
            queue: queue(read, arguments),
            patience: Patience {
                drain_delay: read.duration_or_none(
                    "drain-delay",
                    arguments.drain_delay.as_deref(),
                    defaults.drain_delay,
                ),
                in_flight: read.duration_or_none(
                    "shutdown-timeout",
                    arguments.shutdown_timeout.as_deref(),
                    600 * SECOND,
                ),
                first_request: SECOND,
            },
            shown: Shown::new(),
        }
    }

    /// One line per setting, for `--print-settings`.
    pub fn page(&self) -> String {
        let line = |(name, value): (&&str, &Value)| format!("{name} = {}\n", text(value));
        self.shown.iter().map(line).collect()
    }
}

/// A setting as it is written on a command line.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

fn traces<E: Fn(&str) -> Option<String>>(
    read: &mut Reader<'_, E>,
    arguments: &ServeArguments,
) -> traces::Arguments {
    let namespace = "otel-service-namespace";
    traces::Arguments {
        otel_enabled: read.choice("otel-enabled", arguments.otel_enabled.as_deref(), false),
        otel_service_namespace: read.text(namespace, arguments.otel_service_namespace.as_deref()),
    }
}

fn tls<E: Fn(&str) -> Option<String>>(
    read: &mut Reader<'_, E>,
    arguments: &ServeArguments,
) -> Option<TlsFiles> {
    let certificate = read.path("tls-cert", arguments.tls_cert.as_deref());
    let key = read.path("tls-key", arguments.tls_key.as_deref());
    if certificate.is_some() != key.is_some() {
        read.complain(
            "--tls-cert (FLEXINFER_TLS_CERT) and --tls-key (FLEXINFER_TLS_KEY) are needed together",
        );
    }
    certificate.zip(key).map(|(certificate, key)| TlsFiles { certificate, key })
}

fn limits<E: Fn(&str) -> Option<String>>(
    read: &mut Reader<'_, E>,
    arguments: &ServeArguments,
) -> Limits {
    let silence =
        read.duration("engine-silence", arguments.engine_silence.as_deref(), 600 * SECOND);
    Limits {
        max_body: read.size("max-body", arguments.max_body.as_deref(), 256 * MIB),
        body_pause: read.duration("body-pause", arguments.body_pause.as_deref(), 30 * SECOND),
        body_deadline: read.duration(
            "body-deadline",
            arguments.body_deadline.as_deref(),
            600 * SECOND,
        ),
        connect: read.duration("connect-timeout", arguments.connect_timeout.as_deref(), 5 * SECOND),
        first_byte: read.duration(
            "first-byte-timeout",
            arguments.first_byte_timeout.as_deref(),
            silence,
        ),
        silence,
        pooled: read.duration(
            "engine-keepalive",
            arguments.engine_keepalive.as_deref(),
            4 * SECOND,
        ),
        busy: read.duration_or_none("busy-wait", arguments.busy_wait.as_deref(), 60 * SECOND),
        connections: read.count(
            "upstream-attempts",
            arguments.upstream_attempts.as_deref(),
            2,
            1..=3,
        ),
        stale: STALE,
    }
}

fn queue<E: Fn(&str) -> Option<String>>(
    read: &mut Reader<'_, E>,
    arguments: &ServeArguments,
) -> Policy {
    let enabled = read.choice("backoff-enabled", arguments.backoff_enabled.as_deref(), false);
    let backoff = Backoff {
        max_retries: read.count(
            "backoff-max-retries",
            arguments.backoff_max_retries.as_deref(),
            3,
            1..=100,
        ),
        initial_wait: read.duration(
            "backoff-initial-wait",
            arguments.backoff_initial_wait.as_deref(),
            5 * SECOND,
        ),
        max_wait: read.duration(
            "backoff-max-wait",
            arguments.backoff_max_wait.as_deref(),
            30 * SECOND,
        ),
    };
    if backoff.initial_wait > backoff.max_wait {
        read.complain(
            "--backoff-initial-wait (PROXY_BACKOFF_INITIAL_WAIT) is longer than --backoff-max-wait",
        );
    }
    Policy {
        max_queue: read.count(
            "max-queue-size",
            arguments.max_queue_size.as_deref(),
            100,
            1..=1_000_000,
        ),
        queue_timeout: read.duration(
            "queue-timeout",
            arguments.queue_timeout.as_deref(),
            60 * SECOND,
        ),
        cold_start_timeout: read.duration(
            "cold-start-timeout",
            arguments.cold_start_timeout.as_deref(),
            60 * SECOND,
        ),
        backoff: enabled.then_some(backoff),
        routing: routing::preferences(read, &arguments.routing),
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
