//! Answers: whole JSON bodies and event streams, with the faults that spoil them.

use std::fmt::Write as _;
use std::io;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use http::header;
use serde_json::Value;

use super::call::Turn;
use crate::faults::Cut;
use crate::generation::{Generation, Piece};

/// One server-sent event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: Option<&'static str>,
    pub(crate) content: String,
}

impl Event {
    pub(crate) fn unnamed(content: &Value) -> Self {
        Self { name: None, content: content.to_string() }
    }

    pub(crate) fn named(name: &'static str, content: &Value) -> Self {
        Self { name: Some(name), content: content.to_string() }
    }

    /// The end of a stream as OpenAI marks it.
    pub(crate) fn done() -> Self {
        Self { name: None, content: "[DONE]".to_owned() }
    }

    fn write(&self, framing: Framing, out: &mut String) {
        if framing == Framing::Lines {
            out.push_str(&self.content);
            out.push('\n');
            return;
        }
        if let Some(name) = self.name {
            out.push_str("event: ");
            out.push_str(name);
            out.push('\n');
        }
        out.push_str("data: ");
        out.push_str(&self.content);
        out.push_str("\n\n");
    }
}

/// How events follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// As server-sent events.
    Events,
    /// One JSON object on each line.
    Lines,
}

impl Framing {
    const fn content_type(self) -> &'static str {
        match self {
            Self::Events => "text/event-stream; charset=utf-8",
            Self::Lines => "application/x-ndjson",
        }
    }
}

/// How one API words the events of a stream.
pub(crate) trait Wording: Send + 'static {
    /// Before the first token, and sent with it.
    fn opening(&mut self, generation: &Generation) -> Vec<Event>;
    /// One token of each choice that has one.
    fn pieces(&mut self, generation: &Generation, pieces: &[Piece]) -> Vec<Event>;
    /// After the last token.
    fn closing(&mut self, generation: &Generation) -> Vec<Event>;
}

/// Sets a field of an object.
pub(crate) fn set(object: &mut Value, field: &str, value: Value) {
    if let Value::Object(fields) = object {
        fields.insert(field.to_owned(), value);
    }
}

/// A whole body.
pub(crate) fn json(turn: &Turn, value: &Value) -> Response {
    let mut text = value.to_string();
    if turn.faults.duplicate_keys {
        repeat_first_keys(&mut text, value);
    }
    bytes(turn, "application/json", text.into())
}

/// A whole body of another kind.
pub(crate) fn bytes(turn: &Turn, kind: &'static str, content: Bytes) -> Response {
    let length = content.len();
    let body = if turn.faults.cut_after_tokens.is_some() {
        let half = content.slice(..length / 2);
        Body::from_stream(stream::unfold((Some(half), turn.clone()), |(half, turn)| async move {
            match half {
                Some(half) => Some((Ok(half), (None, turn))),
                None => Some((Err(broken_off(&turn).await), (None, turn))),
            }
        }))
    } else {
        Body::from(content)
    };
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    response
}

/// An event stream that ends with the generation, and ends it when nobody listens any more.
pub(crate) fn events(turn: &Turn, generation: Generation, wording: impl Wording) -> Response {
    streamed(turn, generation, wording, Framing::Events)
}

/// The same as lines of JSON.
pub(crate) fn lines(turn: &Turn, generation: Generation, wording: impl Wording) -> Response {
    streamed(turn, generation, wording, Framing::Lines)
}

fn streamed(
    turn: &Turn,
    generation: Generation,
    wording: impl Wording,
    framing: Framing,
) -> Response {
    let (turn, opened, over) = (turn.clone(), false, false);
    let stage = Streaming { generation, wording, framing, turn, opened, over };
    let mut response = Response::new(Body::from_stream(stream::unfold(stage, step)));
    let headers = response.headers_mut();
    let kind = http::HeaderValue::from_static(framing.content_type());
    headers.insert(header::CONTENT_TYPE, kind);
    headers.insert(header::CACHE_CONTROL, http::HeaderValue::from_static("no-cache"));
    response
}

struct Streaming<W> {
    generation: Generation,
    wording: W,
    framing: Framing,
    turn: Turn,
    opened: bool,
    over: bool,
}

async fn step<W: Wording>(
    mut stage: Streaming<W>,
) -> Option<(Result<Bytes, io::Error>, Streaming<W>)> {
    if stage.over {
        return None;
    }
    let next = stage.generation.next().await;
    let mut text = String::new();
    let framing = stage.framing;
    let mut write =
        |events: Vec<Event>| events.iter().for_each(|event| event.write(framing, &mut text));
    let result = match next {
        Err(_) => {
            stage.over = true;
            return Some((Err(broken_off(&stage.turn).await), stage));
        }
        Ok(pieces) => {
            if !stage.opened {
                stage.opened = true;
                write(stage.wording.opening(&stage.generation));
            }
            if let Some(pieces) = pieces {
                write(stage.wording.pieces(&stage.generation, &pieces));
            } else {
                stage.over = true;
                write(stage.wording.closing(&stage.generation));
            }
            Ok(Bytes::from(text))
        }
    };
    Some((result, stage))
}

/// What ends a body that breaks off; what was written before has left by then.
async fn broken_off(turn: &Turn) -> io::Error {
    // Being pending once makes the connection flush.
    tokio::task::yield_now().await;
    if turn.faults.cut == Cut::Reset {
        turn.wire.end_with_reset();
    }
    io::Error::new(io::ErrorKind::ConnectionAborted, "simulated fault: the answer is cut")
}

/// Writes the first two keys of a JSON object twice.
fn repeat_first_keys(text: &mut String, value: &Value) {
    let Value::Object(fields) = value else { return };
    let mut again = String::from("{");
    for (name, content) in fields.iter().take(2) {
        let name = Value::from(name.as_str());
        // Writing to a String cannot fail.
        let _ = write!(again, "{name}:{content},");
    }
    if !fields.is_empty() {
        text.replace_range(..1, &again);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn repeated_keys_are_still_json_and_come_twice() {
        let value = json!({"id": "a", "object": "chat.completion", "usage": {}});
        let mut text = value.to_string();
        repeat_first_keys(&mut text, &value);
        assert_eq!(text.matches("\"id\":\"a\"").count(), 2, "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn events_are_written_as_lines() {
        let mut text = String::new();
        Event::named("ping", &json!({"n": 1})).write(Framing::Events, &mut text);
        Event::done().write(Framing::Events, &mut text);
        assert_eq!(text, "event: ping\ndata: {\"n\":1}\n\ndata: [DONE]\n\n");
        text.clear();
        Event::unnamed(&json!({"n": 1})).write(Framing::Lines, &mut text);
        assert_eq!(text, "{\"n\":1}\n");
    }
}
