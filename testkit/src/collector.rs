//! A collector of spans that keeps what it is told, as any OTLP collector would read it.

use std::collections::BTreeMap;
use std::io;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span};
use prost::Message as _;

use crate::origin::{Action, Origin, answer};

/// A span as it was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// What it is called.
    pub name: String,
    /// The trace: 32 hexadecimal digits.
    pub trace: String,
    /// Its own id: 16 hexadecimal digits.
    pub id: String,
    /// The id of what it is a part of; empty for the whole.
    pub parent: String,
    /// What is noted of it.
    pub notes: BTreeMap<String, String>,
    /// What is noted of the program that told it.
    pub program: BTreeMap<String, String>,
    /// Whether it says that it failed.
    pub failed: bool,
}

/// The running collector.
pub struct Collector {
    origin: Origin,
}

impl Collector {
    /// Starts one on a port of its own.
    pub async fn start() -> io::Result<Self> {
        let taken = answer(200, &[("Content-Type", "application/x-protobuf")], b"");
        let origin = Origin::start(move |_| vec![Action::Write(taken.clone())]).await?;
        Ok(Self { origin })
    }

    /// What programs need as `OTEL_EXPORTER_OTLP_ENDPOINT`.
    pub fn url(&self) -> String {
        self.origin.url()
    }

    /// The spans told so far, in the order they came. Fails on what is no message of spans.
    pub fn spans(&self) -> Result<Vec<Told>, prost::DecodeError> {
        let mut spans = Vec::new();
        for request in self.origin.requests().into_iter().filter(|request| request.complete) {
            let message = ExportTraceServiceRequest::decode(request.body.as_slice())?;
            spans.extend(message.resource_spans.into_iter().flat_map(told));
        }
        Ok(spans)
    }
}

fn told(of_program: ResourceSpans) -> Vec<Told> {
    let program =
        notes(of_program.resource.map(|resource| resource.attributes).unwrap_or_default());
    let spans = of_program.scope_spans.into_iter().flat_map(|scope| scope.spans);
    spans.map(|span| one(span, program.clone())).collect()
}

fn one(span: Span, program: BTreeMap<String, String>) -> Told {
    /// `STATUS_CODE_ERROR` of the protocol.
    const FAILED: i32 = 2;
    Told {
        name: span.name,
        trace: hexadecimal(&span.trace_id),
        id: hexadecimal(&span.span_id),
        parent: hexadecimal(&span.parent_span_id),
        notes: notes(span.attributes),
        program,
        failed: span.status.is_some_and(|status| status.code == FAILED),
    }
}

fn notes(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    attributes.into_iter().map(|note| (note.key, text(note.value))).collect()
}

fn text(value: Option<AnyValue>) -> String {
    match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::DoubleValue(number)) => number.to_string(),
        Some(Value::BoolValue(truth)) => truth.to_string(),
        other => format!("{other:?}"),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
