//! Streams tell their tokens only when asked to (`stream_options.include_usage`). Where a limit needs
//! to know, the gateway asks in the client's place (BODY-19), and takes the event that comes of it out
//! of the answer again.

use bytes::Bytes;
use memchr::memmem;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::openai::Facts;
use crate::openai::facts::Key;
use crate::rewriting::Splice;

const ASKED: &[u8] = br#"{"include_usage":true}"#;

/// A longer event is none that has only a usage in it, in bytes.
const LONGEST_EVENT: usize = 16 * 1024;

#[derive(Deserialize)]
struct Options<'a> {
    /// Also where it is null.
    #[serde(borrow, default, deserialize_with = "there")]
    include_usage: Option<&'a RawValue>,
}

fn there<'de, D: Deserializer<'de>>(value: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

/// What makes the JSON `body`, which `facts` were read from, ask for its stream's usage. `None` where
/// it asks already, is no stream (BODY-17), or says something that only the engine may judge. Other
/// options stay as they are (BODY-20).
pub fn with_usage(facts: &Facts, body: &[u8]) -> Option<Splice> {
    if !facts.stream {
        return None;
    }
    let Some(span) = facts.span(Key::StreamOptions) else {
        let after_brace = facts.opens_at + 1;
        let field = br#""stream_options":{"include_usage":true},"#;
        return Some(Splice::new(after_brace..after_brace, field.as_slice()));
    };
    let text = facts.text(Key::StreamOptions, body)?;
    if text == "null" {
        return Some(Splice::new(span, ASKED));
    }
    if !text.starts_with('{') {
        return None;
    }
    // Fails where the key is there twice: two readers could read two values.
    match serde_json::from_str::<Options<'_>>(text).ok()?.include_usage {
        Some(asked) if asked.get() == "true" => None,
        Some(other) => {
            let start = span.start + other.get().as_ptr().addr() - text.as_ptr().addr();
            Some(Splice::new(start..start + other.get().len(), b"true".as_slice()))
        }
        None => {
            let empty = text.get(1..)?.trim_start().starts_with('}');
            let field: &[u8] =
                if empty { br#""include_usage":true"# } else { br#""include_usage":true,"# };
            Some(Splice::new(span.start + 1..span.start + 1, field))
        }
    }
}

/// Takes the usage event out of a stream, which may be cut anywhere. Everything else passes at once
/// and as it is, but for the beginning of an event, which waits for its end.
#[derive(Debug, Default)]
pub struct UsageEvents {
    held: Vec<u8>,
    /// In an event that is too long to be the one.
    passing: bool,
}

impl UsageEvents {
    /// What of `piece`, and of what was held back before, is passed on; all of it at the `end`.
    pub fn pass(&mut self, piece: &[u8], end: bool) -> Bytes {
        self.held.extend_from_slice(piece);
        let mut passed = Vec::with_capacity(self.held.len());
        let mut rest = self.held.as_slice();
        while let Some(length) = event_length(rest) {
            let (event, after) = rest.split_at(length);
            if self.passing || !is_usage_only(event) {
                passed.extend_from_slice(event);
            }
            self.passing = false;
            rest = after;
        }
        self.passing |= rest.len() > LONGEST_EVENT;
        if self.passing || end {
            // The end of a long event may be cut too: its last bytes wait for what follows.
            let kept = if end { 0 } else { rest.len().min(3) };
            let (now, later) = rest.split_at(rest.len() - kept);
            if !(end && is_usage_only(now)) {
                passed.extend_from_slice(now);
            }
            rest = later;
        }
        self.held = rest.to_vec();
        passed.into()
    }
}

/// The length of the first event in `bytes` with the blank line that ends it.
fn event_length(bytes: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'\n', bytes).find_map(|at| match bytes.get(at + 1..)? {
        [b'\n', ..] => Some(at + 2),
        [b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    })
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    choices: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

/// Whether `event` has a usage and no choice, as the one has that was asked for.
fn is_usage_only(event: &[u8]) -> bool {
    if event.len() > LONGEST_EVENT || memmem::find(event, b"\"usage\"").is_none() {
        return false;
    }
    let data =
        event.trim_ascii().strip_prefix(b"data:").and_then(|json| std::str::from_utf8(json).ok());
    let Some(Ok(event)) = data.map(serde_json::from_str::<Event<'_>>) else { return false };
    event.usage.is_some_and(|usage| usage.get().starts_with('{'))
        && event.choices.is_some_and(|choices| choices.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rewriting::splice;

    fn asked(body: &str) -> Option<String> {
        let facts = Facts::read(body.as_bytes()).expect("readable");
        let change = with_usage(&facts, body.as_bytes())?;
        let body = Bytes::copy_from_slice(body.as_bytes());
        let rope = splice(&body, vec![change]).expect("fits");
        Some(String::from_utf8(rope.to_bytes().to_vec()).expect("text"))
    }

    #[test]
    fn body_17_only_a_stream_is_asked_for_its_usage() {
        for stream in ["", r#""stream":false,"#, r#""stream":null,"#, r#""stream":"true","#] {
            assert_eq!(asked(&format!(r#"{{{stream}"model":"m"}}"#)), None, "{stream}");
        }
        assert_eq!(asked(r#"{"stream":1}"#), None);
        let expected = r#"{"stream_options":{"include_usage":true},"stream":true,"model":"m"}"#;
        assert_eq!(asked(r#"{"stream":true,"model":"m"}"#).as_deref(), Some(expected));
    }

    #[test]
    fn body_20_only_include_usage_is_set() {
        for (options, becomes) in [
            ("{}", r#"{"include_usage":true}"#),
            ("{ }", r#"{"include_usage":true }"#),
            ("null", r#"{"include_usage":true}"#),
            (
                r#"{"continuous_usage_stats":true}"#,
                r#"{"include_usage":true,"continuous_usage_stats":true}"#,
            ),
            (r#"{"include_usage":null}"#, r#"{"include_usage":true}"#),
            (r#"{"a":1, "include_usage" : false}"#, r#"{"a":1, "include_usage" : true}"#),
        ] {
            let with = |options: &str| format!(r#"{{"stream":true,"stream_options":{options}}}"#);
            assert_eq!(asked(&with(options)), Some(with(becomes)), "{options}");
        }
        for options in ["\"x\"", "7", "[]", r#"{"include_usage":true}"#] {
            let body = format!(r#"{{"stream":true,"stream_options":{options}}}"#);
            assert_eq!(asked(&body), None, "{options}");
        }
        let twice =
            r#"{"stream":true,"stream_options":{"include_usage":false,"include_usage":true}}"#;
        assert_eq!(asked(twice), None);
    }

    const STREAM: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"usage\\\"\"}}],\"usage\":null}\n\n\
        : a comment\n\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\n\
        data: [DONE]\n\n";

    fn without_usage() -> String {
        let mut events: Vec<&str> = STREAM.split_inclusive("\n\n").collect();
        events.remove(2);
        events.concat()
    }

    #[test]
    fn the_event_that_only_the_gateway_asked_for_is_taken_out_however_it_is_cut() {
        for step in 1..STREAM.len() {
            let mut events = UsageEvents::default();
            let mut passed = Vec::new();
            for piece in STREAM.as_bytes().chunks(step) {
                passed.extend_from_slice(&events.pass(piece, false));
            }
            passed.extend_from_slice(&events.pass(b"", true));
            assert_eq!(String::from_utf8_lossy(&passed), without_usage(), "steps of {step}");
        }
    }

    #[test]
    fn whole_events_pass_at_once_and_long_ones_are_not_held_for_long() {
        let mut events = UsageEvents::default();
        assert_eq!(events.pass(b"data: 1\r\n\r\ndata", false), "data: 1\r\n\r\n");
        assert_eq!(events.pass(b": 2\n\n", false), "data: 2\n\n");
        let long = format!("data: {}", "x".repeat(3 * LONGEST_EVENT));
        let mut passed = events.pass(long.as_bytes(), false).to_vec();
        assert!(passed.len() > long.len() - 4);
        passed.extend_from_slice(&events.pass(b"\n\ndata: 3\n\n", false));
        assert_eq!(passed, format!("{long}\n\ndata: 3\n\n").as_bytes());
        assert_eq!(events.pass(b"cut off", true), "cut off");
    }
}
