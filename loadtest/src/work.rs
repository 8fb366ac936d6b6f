//! The requests that are sent: a chat of 2 KB, whole or as a stream.

use bytes::Bytes;
use http::Request;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http_body_util::Full;

/// The name that clients ask for.
pub(crate) const MODEL: &str = "bench";

/// The name that the gateway must put in its place: longer, so that every byte after it moves.
pub(crate) const ENGINE_MODEL: &str = "an-organisation/the-model-behind-it";

/// The key that all requests bear, so that all proxies are sent the same; only the gateway with everything on
/// asks for it.
pub(crate) const BEARER: &str = "Bearer flexinfer-bench-key";

/// The size of a request's body in bytes.
const BODY: usize = 2048;

/// The user for whom the upstream answers with the model's name that it was sent.
const ECHO: &str = r#","user":"echo-model""#;

/// One kind of request, ready to be sent any number of times.
pub(crate) struct Work {
    body: Bytes,
}

impl Work {
    /// A chat answered at once.
    pub(crate) fn chat() -> Self {
        Self { body: body(false, "") }
    }

    /// The same, answered with the model's name as it arrived. It is in the body because not every proxy passes
    /// headers on.
    pub(crate) fn echo() -> Self {
        Self { body: body(false, ECHO) }
    }

    /// A chat answered by events.
    pub(crate) fn stream() -> Self {
        Self { body: body(true, "") }
    }

    pub(crate) fn request(&self, address: &str) -> Result<Request<Full<Bytes>>, http::Error> {
        Request::post("/v1/chat/completions")
            .header(HOST, address)
            .header(CONTENT_TYPE, "application/json")
            .header(AUTHORIZATION, BEARER)
            .body(Full::new(self.body.clone()))
    }
}

fn body(stream: bool, more: &str) -> Bytes {
    let head =
        format!(r#"{{"model":"{MODEL}","stream":{stream},"messages":[{{"role":"user","content":""#);
    let tail = format!(r#""}}],"temperature":0.7,"max_tokens":256{more}}}"#);
    let words = "the quick brown fox jumps over the lazy dog ".bytes().cycle();
    let filling = words.take(BODY.saturating_sub(head.len() + tail.len()));
    head.bytes().chain(filling).chain(tail.bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_is_json_of_exactly_two_kilobytes() {
        for body in [body(false, ""), body(true, ""), body(false, ECHO)] {
            assert_eq!(body.len(), BODY);
            let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(value["model"], MODEL);
        }
    }
}
