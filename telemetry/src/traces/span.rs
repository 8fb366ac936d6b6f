//! One piece of work with its beginning and end. Where traces are off a span is nothing at all, so that
//! whoever makes one need not ask.

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::trace::{
    FutureExt as _, SpanBuilder, SpanKind, Status, TraceContextExt as _, Tracer as _,
};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_sdk::trace::SdkTracer;

use super::carried;

/// Makes spans.
#[derive(Clone, Debug, Default)]
pub struct Tracer(Option<SdkTracer>);

impl Tracer {
    pub(super) fn new(tracer: SdkTracer) -> Self {
        Self(Some(tracer))
    }

    /// Answers somebody's request, as a part of the trace that its `head` names.
    pub fn answering(&self, name: &'static str, head: &HeaderMap) -> Span {
        self.begin(name, SpanKind::Server, || carried::parent(head))
    }

    /// Something done here, as a part of what [`Span::around`] is around.
    pub fn doing(&self, name: &'static str) -> Span {
        self.begin(name, SpanKind::Internal, Context::current)
    }

    /// A request to somebody else, as a part of what [`Span::around`] is around.
    pub fn asking(&self, name: &'static str) -> Span {
        self.begin(name, SpanKind::Client, Context::current)
    }

    fn begin(&self, name: &'static str, kind: SpanKind, parent: impl FnOnce() -> Context) -> Span {
        let Some(tracer) = &self.0 else { return Span::default() };
        Span::begin(tracer.clone(), name, kind, &parent())
    }
}

/// Ends when it is dropped.
#[derive(Debug, Default)]
pub struct Span(Option<Box<Begun>>);

#[derive(Debug)]
struct Begun {
    tracer: SdkTracer,
    context: Context,
}

impl Span {
    fn begin(tracer: SdkTracer, name: &'static str, kind: SpanKind, parent: &Context) -> Self {
        let span = tracer.build_with_context(SpanBuilder::from_name(name).with_kind(kind), parent);
        let context = parent.with_span(span);
        Self(Some(Box::new(Begun { tracer, context })))
    }

    /// A part of it that is done here.
    #[must_use]
    pub fn doing(&self, name: &'static str) -> Self {
        self.part(name, SpanKind::Internal)
    }

    /// A part of it that somebody else is asked for.
    #[must_use]
    pub fn asking(&self, name: &'static str) -> Self {
        self.part(name, SpanKind::Client)
    }

    fn part(&self, name: &'static str, kind: SpanKind) -> Self {
        let Some(begun) = &self.0 else { return Self(None) };
        Self::begin(begun.tracer.clone(), name, kind, &begun.context)
    }

    /// Whether anything noted here reaches anybody.
    pub fn is_told(&self) -> bool {
        self.0.as_ref().is_some_and(|begun| begun.context.span().is_recording())
    }

    /// Notes what is known of it now.
    pub fn note(&self, key: &'static str, value: impl Into<Value>) {
        if let Some(begun) = &self.0 {
            begun.context.span().set_attribute(KeyValue::new(key, value));
        }
    }

    /// Notes what it takes some work to say; nothing is done where nobody is told.
    pub fn note_with<V: Into<Value>>(&self, key: &'static str, value: impl FnOnce() -> V) {
        if self.is_told() {
            self.note(key, value());
        }
    }

    /// Notes that it failed, and by which kind of failure.
    pub fn fail(&self, kind: &str) {
        let Some(begun) = &self.0 else { return };
        let span = begun.context.span();
        span.set_attribute(KeyValue::new("error.type", kind.to_owned()));
        span.set_status(Status::error(kind.to_owned()));
    }

    /// The headers that make the receiver's spans parts of this one.
    pub fn headers(&self) -> Vec<(HeaderName, HeaderValue)> {
        self.0.as_ref().map_or_else(Vec::new, |begun| carried::headers(&begun.context))
    }

    /// The trace it belongs to: 32 hexadecimal digits.
    pub fn trace(&self) -> Option<String> {
        let begun = self.0.as_ref()?;
        Some(begun.context.span().span_context().trace_id().to_string())
    }

    /// Makes what `work` begins with [`Tracer::doing`] and [`Tracer::asking`] a part of it.
    pub fn around<F: Future>(&self, work: F) -> impl Future<Output = F::Output> {
        let context = self.0.as_ref().map_or_else(Context::current, |begun| begun.context.clone());
        work.with_context(context)
    }
}
