//! What the gateway says about itself: its own lines, without Pingora's, and its spans.

use anyhow::Context as _;
use flexinfer_telemetry::{log, traces};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;

use crate::settings::Settings;

/// Pingora's own lines: they are about single requests, which our access log tells better.
const PINGORA: [&str; 3] = ["pingora_core", "pingora_proxy", "pingora_pool"];

/// Begins to tell. Once per process, before its runtime starts.
pub fn begin(settings: &Settings) -> anyhow::Result<traces::Traces> {
    log::begin(settings.log_format, without_pingora(settings.log_level.clone()))
        .context("the log cannot be set up")?;
    Ok(traces::begin(&settings.traces, "flexinfer-gateway")?)
}

fn without_pingora(level: Targets) -> Targets {
    let quiet = level.default_level().is_none_or(|level| level < LevelFilter::DEBUG);
    PINGORA.into_iter().fold(level, |level, target| {
        level.with_target(target, if quiet { LevelFilter::OFF } else { LevelFilter::WARN })
    })
}
