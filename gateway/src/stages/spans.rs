//! What a trace tells of one request: the whole of it, its wait for a slot, and each try of an engine.
//! All of it is nothing where traces are off.

use std::net::SocketAddr;
use std::time::Duration;

use flexinfer_core::openai::Usage;
use flexinfer_telemetry::traces::{Span, Tracer};
use pingora_http::RequestHeader;

/// The spans of a request that are under way.
#[derive(Default)]
pub(crate) struct Spans {
    whole: Span,
    attempt: Span,
}

/// How a request ended, as its trace tells it.
pub(crate) struct Ended<'a> {
    /// The status that the client got, if it got one.
    pub(crate) status: Option<u16>,
    /// In one word.
    pub(crate) outcome: &'static str,
    /// The code of the rejection that it was answered with.
    pub(crate) rejected: Option<&'static str>,
    /// Its model.
    pub(crate) model: Option<&'a str>,
    /// Who sent it.
    pub(crate) caller: Option<&'a str>,
    /// Until the first byte of the engine's answer.
    pub(crate) first_byte: Option<Duration>,
    /// Its tokens, where the engine tells them.
    pub(crate) usage: Option<&'a Usage>,
}

impl Spans {
    /// A request for an engine came, as a part of the trace that its head names.
    pub(crate) fn begin(tracer: &Tracer, head: &RequestHeader) -> Self {
        let whole = tracer.answering("proxy.handle_request", &head.headers);
        if whole.is_told() {
            whole.note("http.request.method", head.method.to_string());
            whole.note("url.path", head.uri.path().to_owned());
        }
        Self { whole, attempt: Span::default() }
    }

    /// It waits for a slot until this is dropped.
    pub(crate) fn wait(&self) -> Span {
        self.whole.doing("proxy.wait")
    }

    /// It goes to this engine now; what went before is over.
    pub(crate) fn go_to(&mut self, engine: SocketAddr, connections: u32) {
        self.attempt = self.whole.asking("proxy.engine");
        if self.attempt.is_told() {
            self.attempt.note("server.address", engine.ip().to_string());
            self.attempt.note("server.port", i64::from(engine.port()));
            self.attempt.note("flexinfer.connections", i64::from(connections));
        }
    }

    /// The engine's own spans become parts of this try by these headers.
    pub(crate) fn carry(&self, head: &mut RequestHeader) -> pingora_core::Result<()> {
        self.attempt
            .headers()
            .into_iter()
            .try_for_each(|(name, value)| head.insert_header(name, value))
    }

    /// This try came to nothing.
    pub(crate) fn fail(&mut self, kind: &str) {
        std::mem::take(&mut self.attempt).fail(kind);
    }

    /// The trace, for the log.
    pub(crate) fn trace(&self) -> Option<String> {
        self.whole.trace()
    }

    /// The request is over.
    pub(crate) fn end(&mut self, ended: &Ended<'_>) {
        self.attempt = Span::default();
        let whole = std::mem::take(&mut self.whole);
        if !whole.is_told() {
            return;
        }
        let texts = [
            ("flexinfer.outcome", Some(ended.outcome)),
            ("gen_ai.request.model", ended.model),
            ("flexinfer.caller", ended.caller),
            ("flexinfer.rejection", ended.rejected),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                whole.note(key, text.to_owned());
            }
        }
        if let Some(status) = ended.status {
            whole.note("http.response.status_code", i64::from(status));
        }
        if let Some(first_byte) = ended.first_byte {
            whole.note("flexinfer.first_byte_seconds", first_byte.as_secs_f64());
        }
        let tokens = [
            ("gen_ai.usage.input_tokens", ended.usage.and_then(|usage| usage.prompt_tokens)),
            ("gen_ai.usage.output_tokens", ended.usage.and_then(|usage| usage.completion_tokens)),
        ];
        for (key, count) in tokens {
            if let Some(count) = count {
                whole.note(key, i64::try_from(count).unwrap_or(i64::MAX));
            }
        }
        // A refusal that the client has to mend is no failure of this server.
        if ended.status.is_some_and(|status| status >= 500) {
            whole.fail(ended.rejected.unwrap_or(ended.outcome));
        }
    }
}
