//! Lines on standard error, for people or as JSON.

use std::io::IsTerminal as _;

use clap::{Args, ValueEnum};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};
use tracing_subscriber::{Layer as _, fmt};

/// Flags of the log, the same for each subcommand.
#[derive(Clone, Debug, Args)]
// Beside those of traces on one command line, where a group's name may be there once.
#[group(id = "log")]
pub struct Arguments {
    /// How log lines look
    #[arg(long, global = true, env = "FLEXINFER_LOG_FORMAT", default_value = "text")]
    pub log_format: Format,
    /// error, warn, info, debug or trace; also per part, as in info,flexinfer_core=debug
    #[arg(long, global = true, env = "FLEXINFER_LOG_LEVEL", default_value = "info")]
    pub log_level: Targets,
}

/// How log lines look.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    ValueEnum,
    strum::Display,
    strum::EnumString,
    strum::VariantNames,
)]
#[strum(serialize_all = "lowercase")]
pub enum Format {
    /// For people
    Text,
    /// One JSON object per line
    Json,
}

/// Begins to write the lines that `level` lets through. Once per process.
pub fn begin(format: Format, level: Targets) -> Result<(), TryInitError> {
    let lines = match format {
        Format::Json => {
            fmt::layer().json().flatten_event(true).with_writer(std::io::stderr).boxed()
        }
        Format::Text => fmt::layer()
            .compact()
            .with_target(false)
            .with_ansi(std::io::stderr().is_terminal())
            .with_writer(std::io::stderr)
            .boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(level)).try_init()
}
