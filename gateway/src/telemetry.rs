//! What the process says about itself while it runs: lines on standard error, for people or as JSON.

use std::io::IsTerminal;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{Layer, fmt};

use crate::settings::LogFormat;

/// Pingora's own lines: they are about single requests, which our access log tells better.
const PINGORA: [&str; 3] = ["pingora_core", "pingora_proxy", "pingora_pool"];

/// Begins to write lines of `level` and above. Once per process.
pub fn begin(format: LogFormat, level: Targets) -> Result<(), TryInitError> {
    let quiet = level.default_level().is_none_or(|level| level < LevelFilter::DEBUG);
    let level = PINGORA.into_iter().fold(level, |level, target| {
        level.with_target(target, if quiet { LevelFilter::OFF } else { LevelFilter::WARN })
    });
    let lines = match format {
        LogFormat::Json => {
            fmt::layer().json().flatten_event(true).with_writer(std::io::stderr).boxed()
        }
        LogFormat::Text => {
            let colours = std::io::stderr().is_terminal();
            fmt::layer()
                .compact()
                .with_target(false)
                .with_ansi(colours)
                .with_writer(std::io::stderr)
                .boxed()
        }
    };
    tracing_subscriber::registry().with(lines.with_filter(level)).try_init()
}
