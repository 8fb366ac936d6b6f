//! Streams of answers: how their pieces are told apart, and how one says that it ends before its end.

use super::Dialect;
use super::errors::error_body;
use crate::rejection::Rejection;

/// How the pieces of a streamed answer are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// `text/event-stream`: events with an empty line after each.
    Events,
    /// `application/x-ndjson`: one JSON object a line, as Ollama answers.
    Lines,
}

impl Stream {
    /// The kind of stream that an answer of this content type is, if it is one.
    pub fn of(content_type: &[u8]) -> Option<Self> {
        let starts = |name: &str| {
            let start = content_type.get(..name.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(name.as_bytes()))
        };
        if starts("text/event-stream") {
            Some(Self::Events)
        } else if starts("application/x-ndjson") {
            Some(Self::Lines)
        } else {
            None
        }
    }

    /// Whether a stream that ends with these bytes so far ends between two pieces.
    pub fn is_whole(self, last: &[u8]) -> bool {
        match self {
            Self::Events => last.ends_with(b"\n\n") || last.ends_with(b"\n\r\n"),
            Self::Lines => last.ends_with(b"\n"),
        }
    }

    /// The piece with which a stream ends that its engine did not end; clients of `dialect` raise an
    /// error on it. `whole` is false where the engine stopped within a piece, of which this one must
    /// not become a part.
    pub fn last_words(
        self,
        dialect: Dialect,
        rejection: &Rejection,
        request_id: Option<&str>,
        whole: bool,
    ) -> Vec<u8> {
        let body = error_body(dialect, rejection, request_id);
        let (before, start, end): (&[u8], &[u8], &[u8]) = match (self, dialect) {
            (Self::Events, Dialect::Anthropic) => (b"\n\n", b"event: error\ndata: ", b"\n\n"),
            (Self::Events, _) => (b"\n\n", b"data: ", b"\n\n"),
            (Self::Lines, _) => (b"\n", b"", b"\n"),
        };
        let before = if whole { b"" } else { before };
        [before, start, &body, end].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ModelId;

    fn last_words(stream: Stream, dialect: Dialect, whole: bool) -> String {
        let rejection = Rejection::UpstreamBroke { model: ModelId::new("default", "m") };
        String::from_utf8(stream.last_words(dialect, &rejection, None, whole)).expect("text")
    }

    #[test]
    fn last_words_stand_by_themselves() {
        let event = last_words(Stream::Events, Dialect::OpenAi, true);
        assert!(event.starts_with("data: {\"error\":{") && event.ends_with("}\n\n"), "{event}");
        assert_eq!(event.lines().count(), 2, "one line and an empty one: {event}");
        assert_eq!(last_words(Stream::Events, Dialect::OpenAi, false), format!("\n\n{event}"));
        let named = last_words(Stream::Events, Dialect::Anthropic, true);
        assert!(named.starts_with("event: error\ndata: {\"type\":\"error\","), "{named}");
        let line = last_words(Stream::Lines, Dialect::Ollama, true);
        assert!(line.starts_with("{\"error\":") && line.ends_with("}\n"), "{line}");
    }

    #[test]
    fn streams_are_known_by_their_content_type() {
        assert_eq!(Stream::of(b"Text/Event-Stream; charset=utf-8"), Some(Stream::Events));
        assert_eq!(Stream::of(b"application/x-ndjson"), Some(Stream::Lines));
        assert_eq!(Stream::of(b"application/json"), None);
    }

    #[test]
    fn a_stream_is_whole_between_its_pieces() {
        for (last, events, lines) in [
            ("data: 1\n\n", true, true),
            ("data: 1\r\n\r\n", true, true),
            ("data: 1\n", false, true),
            ("dat", false, false),
        ] {
            assert_eq!(Stream::Events.is_whole(last.as_bytes()), events, "{last:?}");
            assert_eq!(Stream::Lines.is_whole(last.as_bytes()), lines, "{last:?}");
        }
    }
}
