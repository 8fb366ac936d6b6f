//! The trace in the heads of requests, by W3C Trace Context.

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator as _};
use opentelemetry_sdk::propagation::TraceContextPropagator;

/// What the sender of `head` is doing, if it says so in a way that can be read.
pub(super) fn parent(head: &HeaderMap) -> Context {
    // The sender's trace, and none that happens to be around.
    TraceContextPropagator::new().extract_with_context(&Context::new(), &Received(head))
}

/// The headers that name `context` as the parent.
pub(super) fn headers(context: &Context) -> Vec<(HeaderName, HeaderValue)> {
    let mut sent = Sent(Vec::new());
    TraceContextPropagator::new().inject_context(context, &mut sent);
    sent.0
}

struct Received<'a>(&'a HeaderMap);

impl Extractor for Received<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

struct Sent(Vec<(HeaderName, HeaderValue)>);

impl Injector for Sent {
    fn set(&mut self, key: &str, value: String) {
        // An empty tracestate says nothing.
        if value.is_empty() {
            return;
        }
        if let (Ok(key), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value)) {
            self.0.push((key, value));
        }
    }
}
