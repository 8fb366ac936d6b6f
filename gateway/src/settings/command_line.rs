//! The command line. Values stay text here, so that `Settings` can complain about all of them at once.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use flexinfer_simulator::SimulateArgs;

use super::routing::RoutingArguments;
use super::rules::RuleArguments;

/// One front door for every model you own: wakes them when they are asked for, lets them share a GPU, and
/// speaks OpenAI's API.
#[derive(Debug, Parser)]
#[command(name = "flexinfer-gateway", version, propagate_version = true, max_term_width = 100)]
pub struct CommandLine {
    /// What to run.
    #[command(subcommand)]
    pub command: Command,
}

/// What the program can be.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the models that the YAML files in a folder describe, with engines on this machine
    Local(Box<LocalArguments>),
    /// Serve the Model objects of a Kubernetes cluster, whose engines its controller starts
    Kubernetes(Box<KubernetesArguments>),
    /// Be an engine without a GPU, for trying things out and for tests
    Simulate(Box<SimulateArgs>),
    /// Keep an engine, and end it when the gateway ends (started by the gateway)
    #[command(hide = true)]
    Supervise {
        /// The engine's program and its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<OsString>,
    },
}

/// The arguments of `local`.
#[derive(Debug, Args)]
pub struct LocalArguments {
    /// Folder with one YAML file per Model, or several in a file; watched for changes
    #[arg(value_name = "DIR")]
    pub models: PathBuf,

    /// Print the settings in force and end
    #[arg(long)]
    pub print_settings: bool,

    /// Say what is wrong with settings, keys, certificates and Models, and end
    #[arg(long)]
    pub check: bool,

    /// How to serve.
    #[command(flatten)]
    pub serve: ServeArguments,

    /// How to run engines.
    #[command(flatten)]
    pub engines: EngineArguments,
}

/// The arguments of `kubernetes`.
#[derive(Debug, Args)]
pub struct KubernetesArguments {
    /// Print the settings in force and end
    #[arg(long)]
    pub print_settings: bool,

    /// Say what is wrong with settings, keys and certificates, and end; no cluster is asked
    #[arg(long)]
    pub check: bool,

    /// Which models.
    #[command(flatten)]
    pub cluster: ClusterArguments,

    /// How to serve.
    #[command(flatten)]
    pub serve: ServeArguments,
}

/// Flags about the cluster whose models are served.
#[derive(Clone, Debug, Default, Args)]
pub struct ClusterArguments {
    /// Namespace whose models are served; give it once per namespace
    /// [FLEXINFER_NAMESPACE, separated by commas; else POD_NAMESPACE] [default: default]
    #[arg(long, value_name = "NAMESPACE", help_heading = "Cluster")]
    pub namespace: Vec<String>,
    /// Serve the models of all namespaces [FLEXINFER_ALL_NAMESPACES] [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Cluster")]
    pub all_namespaces: Option<String>,
    /// Name of this gateway among those before the same models [FLEXINFER_GATEWAY_NAME; else POD_NAME]
    /// [default: the machine's name]
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub gateway_name: Option<String>,
    /// Service that this gateway is asked by, in the pod's namespace: its names in the cluster are allowed beside
    /// those of --allowed-hosts [FLEXINFER_SERVICE_NAME] [default: none]
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub service_name: Option<String>,
    /// What the names of the cluster's Services end with [FLEXINFER_CLUSTER_DOMAIN] [default: cluster.local]
    #[arg(long, value_name = "NAME", help_heading = "Cluster")]
    pub cluster_domain: Option<String>,
    /// Unix socket where a gateway hands its sockets to the one that takes its place
    /// [FLEXINFER_UPGRADE_SOCKET] [default: none]
    #[arg(long, value_name = "PATH", help_heading = "Cluster")]
    pub upgrade_socket: Option<String>,
}

/// Flags about engines on this machine.
#[derive(Clone, Debug, Default, Args)]
pub struct EngineArguments {
    /// VRAM that the models of a shared group, or of NAMESPACE/GROUP alone, may take together; give
    /// it once per group [FLEXINFER_VRAM_BUDGET, separated by commas]
    #[arg(long, value_name = "GROUP=SIZE", help_heading = "Engines")]
    pub vram_budget: Vec<String>,
    /// Folder that stands in for a persistent volume claim; give it once per claim
    /// [FLEXINFER_PVC, separated by commas]
    #[arg(long, value_name = "CLAIM=DIR", help_heading = "Engines")]
    pub pvc: Vec<String>,
    /// Where downloads, logs and the engines' own files are kept [FLEXINFER_DATA_DIR]
    /// [default: ~/.local/share/flexinfer]
    #[arg(long, value_name = "DIR", help_heading = "Engines")]
    pub data_dir: Option<String>,
    /// Hub that HF:// models are downloaded from; its token is taken from HF_TOKEN [HF_ENDPOINT]
    /// [default: https://huggingface.co]
    #[arg(long, value_name = "URL", help_heading = "Engines")]
    pub hf_endpoint: Option<String>,
    /// Registry that oci:// models are downloaded from over plain http, besides those on this machine; give it
    /// once per registry [FLEXINFER_INSECURE_REGISTRIES, separated by commas]
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Engines")]
    pub insecure_registries: Vec<String>,
}

/// Flags for serving requests. Each has an environment variable, used where the flag is not given.
#[derive(Clone, Debug, Default, Args)]
pub struct ServeArguments {
    /// Address for requests [FLEXINFER_LISTEN] [default: 127.0.0.1:8080; 0.0.0.0:8080 on a cluster]
    #[arg(long, value_name = "ADDRESS", help_heading = "Addresses")]
    pub listen: Option<String>,
    /// Port for requests, instead of the one in --listen [FLEXINFER_PORT]
    #[arg(long, value_name = "PORT", help_heading = "Addresses")]
    pub port: Option<String>,
    /// Address for metrics, health and debug pages [FLEXINFER_ADMIN_LISTEN]
    /// [default: 127.0.0.1:9090; 0.0.0.0:9090 on a cluster]
    #[arg(long, value_name = "ADDRESS", help_heading = "Addresses")]
    pub admin_listen: Option<String>,
    /// Certificate chain (PEM, the server's own first) for HTTPS instead of HTTP; followed for changes
    /// [FLEXINFER_TLS_CERT] [default: none]
    #[arg(long, value_name = "FILE", help_heading = "Addresses")]
    pub tls_cert: Option<String>,
    /// Private key (PEM) of the certificate [FLEXINFER_TLS_KEY]
    #[arg(long, value_name = "FILE", help_heading = "Addresses")]
    pub tls_key: Option<String>,

    /// Requests that may wait for one model [PROXY_MAX_QUEUE_SIZE] [default: 100]
    #[arg(long, value_name = "COUNT", help_heading = "Waiting")]
    pub max_queue_size: Option<String>,
    /// How long a request waits for a slot [PROXY_QUEUE_TIMEOUT] [default: 60s]
    #[arg(long, value_name = "DURATION", help_heading = "Waiting")]
    pub queue_timeout: Option<String>,
    /// How long a request waits for a model that sleeps, unless the Model says otherwise
    /// [PROXY_COLD_START_TIMEOUT] [default: 60s]
    #[arg(long, value_name = "DURATION", help_heading = "Waiting")]
    pub cold_start_timeout: Option<String>,
    /// Whether a failed activation is tried again while requests wait [PROXY_BACKOFF_ENABLED]
    /// [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Waiting")]
    pub backoff_enabled: Option<String>,
    /// Tries after the first [PROXY_BACKOFF_MAX_RETRIES] [default: 3]
    #[arg(long, value_name = "COUNT", help_heading = "Waiting")]
    pub backoff_max_retries: Option<String>,
    /// Wait before the second try; doubles with each [PROXY_BACKOFF_INITIAL_WAIT] [default: 5s]
    #[arg(long, value_name = "DURATION", help_heading = "Waiting")]
    pub backoff_initial_wait: Option<String>,
    /// The longest wait between tries [PROXY_BACKOFF_MAX_WAIT] [default: 30s]
    #[arg(long, value_name = "DURATION", help_heading = "Waiting")]
    pub backoff_max_wait: Option<String>,

    /// The longest request body [FLEXINFER_MAX_BODY] [default: 256Mi]
    #[arg(long, value_name = "SIZE", help_heading = "Bodies")]
    pub max_body: Option<String>,
    /// All request bodies held at once [FLEXINFER_MAX_BUFFERED_BYTES] [default: 1Gi]
    #[arg(long, value_name = "SIZE", help_heading = "Bodies")]
    pub max_buffered_bytes: Option<String>,
    /// How long a body may pause on its way [FLEXINFER_BODY_PAUSE] [default: 30s]
    #[arg(long, value_name = "DURATION", help_heading = "Bodies")]
    pub body_pause: Option<String>,
    /// How long a body may take in all [FLEXINFER_BODY_DEADLINE] [default: 10m]
    #[arg(long, value_name = "DURATION", help_heading = "Bodies")]
    pub body_deadline: Option<String>,

    /// Who may send how much.
    #[command(flatten)]
    pub rules: RuleArguments,

    /// How requests are spread.
    #[command(flatten)]
    pub routing: RoutingArguments,

    /// How long a connection to an engine may take to be made [FLEXINFER_CONNECT_TIMEOUT] [default: 5s]
    #[arg(long, value_name = "DURATION", help_heading = "Engines")]
    pub connect_timeout: Option<String>,
    /// How long an engine may take until its answer begins [FLEXINFER_FIRST_BYTE_TIMEOUT]
    /// [default: as --engine-silence]
    #[arg(long, value_name = "DURATION", help_heading = "Engines")]
    pub first_byte_timeout: Option<String>,
    /// How long an engine may be silent within its answer [FLEXINFER_ENGINE_SILENCE] [default: 10m]
    #[arg(long, value_name = "DURATION", help_heading = "Engines")]
    pub engine_silence: Option<String>,
    /// How long an idle connection to an engine is kept [FLEXINFER_ENGINE_KEEPALIVE] [default: 4s]
    #[arg(long, value_name = "DURATION", help_heading = "Engines")]
    pub engine_keepalive: Option<String>,
    /// How long a request waits for an engine that says that it is busy; 0 passes its answer on
    /// [FLEXINFER_BUSY_WAIT] [default: 60s]
    #[arg(long, value_name = "DURATION", help_heading = "Engines")]
    pub busy_wait: Option<String>,
    /// How requests for a service label are spread over its models: round-robin, least-loaded,
    /// prefix-or-rr, session-or-rr or prefix-session-or-rr [FLEXINFER_PROXY_LABEL_GROUP_ROUTING]
    /// [default: round-robin]
    #[arg(long, value_name = "MODE", help_heading = "Engines")]
    pub label_routing: Option<String>,
    /// Connections tried for one request, 1 to 3 [FLEXINFER_PROXY_UPSTREAM_MAX_ATTEMPTS] [default: 2]
    #[arg(long, value_name = "COUNT", help_heading = "Engines")]
    pub upstream_attempts: Option<String>,

    /// How long a stopping gateway still takes requests while it says that it is not ready
    /// [PROXY_SHUTDOWN_DRAIN_DELAY] [default: 0s; 5s on a cluster]
    #[arg(long, value_name = "DURATION", help_heading = "Process")]
    pub drain_delay: Option<String>,
    /// How long a stopping gateway waits for requests in flight [PROXY_GRACEFUL_SHUTDOWN_TIMEOUT]
    /// [default: 10m]
    #[arg(long, value_name = "DURATION", help_heading = "Process")]
    pub shutdown_timeout: Option<String>,
    /// Threads that serve requests [FLEXINFER_THREADS] [default: one per processor]
    #[arg(long, value_name = "COUNT", help_heading = "Process")]
    pub threads: Option<String>,
    /// How log lines look: text or json [FLEXINFER_LOG_FORMAT] [default: text; json on a cluster]
    #[arg(long, value_name = "FORMAT", help_heading = "Process")]
    pub log_format: Option<String>,
    /// error, warn, info, debug or trace; also per part, as in info,flexinfer::access=debug
    /// [FLEXINFER_LOG_LEVEL] [default: info]
    #[arg(long, value_name = "LEVEL", help_heading = "Process")]
    pub log_level: Option<String>,
    /// Whether spans of requests are sent to the collector at OTEL_EXPORTER_OTLP_ENDPOINT
    /// [FLEXINFER_OTEL_ENABLED] [default: false]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Process")]
    pub otel_enabled: Option<String>,
    /// The service.namespace that spans carry [FLEXINFER_OTEL_SERVICE_NAMESPACE]
    #[arg(long, value_name = "NAME", help_heading = "Process")]
    pub otel_service_namespace: Option<String>,
}
