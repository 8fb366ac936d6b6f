//! Spans, told to a collector over OTLP (HTTP, protobuf). Off unless asked for, and then nothing waits
//! for the collector: spans are sent in batches by a thread of their own, and dropped when too many wait.
//!
//! Where the collector is, and how much is sampled, is said by the variables that every OpenTelemetry
//! program reads: `OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_TRACES_SAMPLER`,
//! `OTEL_RESOURCE_ATTRIBUTES` and so on.

mod carried;
mod span;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args};
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{
    ExporterBuildError, HttpExporterBuilderSet, SpanExporter, SpanExporterBuilder,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanExporter as Exporter};

pub use span::{Span, Tracer};

/// Whom the spans are told to, as this process has it from [`begin`].
static PROCESS: OnceLock<Tracer> = OnceLock::new();

/// Flags of the traces, with the original's variables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[group(id = "traces")]
pub struct Arguments {
    /// Send spans to the collector at OTEL_EXPORTER_OTLP_ENDPOINT
    #[arg(long, global = true, env = "FLEXINFER_OTEL_ENABLED", num_args = 0..=1,
        default_missing_value = "true", default_value = "false",
        value_parser = BoolishValueParser::new(), action = ArgAction::Set)]
    pub otel_enabled: bool,
    /// The spans' `service.namespace`
    #[arg(long, global = true, env = "FLEXINFER_OTEL_SERVICE_NAMESPACE", value_name = "NAME")]
    pub otel_service_namespace: Option<String>,
}

/// Why no spans can be told.
#[derive(Debug, thiserror::Error)]
#[error("spans cannot be sent; OTEL_EXPORTER_OTLP_ENDPOINT is like http://collector:4318")]
pub struct TracesError(#[from] ExporterBuildError);

/// Spans on their way to the collector; whoever holds this says when the last ones are sent.
#[derive(Debug)]
pub struct Traces(Option<SdkTracerProvider>);

/// Begins to tell spans, if `arguments` say so, in the name of `service`. Once per process, before its
/// runtime starts.
pub fn begin(arguments: &Arguments, service: &'static str) -> Result<Traces, TracesError> {
    if !arguments.otel_enabled {
        return Ok(Traces(None));
    }
    let exporter = exporter(SpanExporter::builder().with_http())?;
    let namespace = arguments.otel_service_namespace.as_deref();
    let provider = provider(exporter, service, namespace);
    let tracer = Tracer::new(provider.tracer("flexinfer"));
    if PROCESS.set(tracer).is_err() {
        tracing::warn!("spans were asked for twice; the first collector gets them");
    }
    Ok(Traces(Some(provider)))
}

/// Sends to where `builder` or the environment says, also over TLS.
fn exporter(
    builder: SpanExporterBuilder<HttpExporterBuilderSet>,
) -> Result<SpanExporter, ExporterBuildError> {
    // Someone else may have chosen the same before.
    let _already_chosen = rustls::crypto::ring::default_provider().install_default();
    builder.build()
}

/// Gives its spans to `exporter`, in the name of `service` unless `OTEL_SERVICE_NAME` says another.
fn provider(
    exporter: impl Exporter + 'static,
    service: &'static str,
    namespace: Option<&str>,
) -> SdkTracerProvider {
    let named = std::env::var_os("OTEL_SERVICE_NAME").is_some_and(|name| !name.is_empty());
    let service = (!named).then(|| KeyValue::new("service.name", service));
    let namespace = namespace
        .filter(|namespace| !namespace.is_empty())
        .map(|namespace| KeyValue::new("service.namespace", namespace.to_owned()));
    let resource = Resource::builder()
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_attributes(service.into_iter().chain(namespace))
        .build();
    SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build()
}

impl Traces {
    /// Sends what is left. Waits for the collector, so not from within a runtime.
    pub fn end(self) {
        let Some(provider) = self.0 else { return };
        if let Err(error) = provider.shutdown() {
            tracing::warn!(%error, "the last spans were not sent");
        }
    }
}

impl Tracer {
    /// What [`begin`] began in this process; without it, nothing is told.
    pub fn of_this_process() -> Self {
        PROCESS.get().cloned().unwrap_or_default()
    }
}
