//! Finds the first token in an event stream that is cut anywhere.

use serde_json::Value;

/// The longest line that is looked at.
const LONGEST_LINE: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Events {
    line: Vec<u8>,
}

impl Events {
    /// Whether an event that ends in `part` has text in it.
    pub(super) fn has_text(&mut self, part: &[u8]) -> bool {
        let mut found = false;
        for byte in part {
            if *byte == b'\n' {
                found |= line_has_text(&self.line);
                self.line.clear();
            } else if self.line.len() < LONGEST_LINE {
                self.line.push(*byte);
            }
        }
        found
    }
}

fn line_has_text(line: &[u8]) -> bool {
    let Some(event) = line.strip_prefix(b"data:") else { return false };
    let Ok(event) = serde_json::from_slice::<Value>(event) else { return false };
    let delta = event.pointer("/choices/0/delta").unwrap_or(&Value::Null);
    let has =
        |key: &str| delta.get(key).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    ["content", "reasoning_content", "reasoning"].into_iter().any(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_token_is_the_first_text_and_not_the_first_event() {
        let stream = concat!(
            "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
            ": alive\n\n",
            "data: {\"choices\":[]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"Once\"}}]}\r\n\r\n",
            "data: [DONE]\n\n",
        );
        let end = stream.find("Once").unwrap() + "Once\"}}]}\r\n".len();
        for length in [1, 7, 64] {
            let mut events = Events::default();
            let mut at = 0;
            for part in stream.as_bytes().chunks(length) {
                let before = at;
                at += part.len();
                let ends_here = before < end && end <= at;
                assert_eq!(events.has_text(part), ends_here, "{before} to {at}");
            }
        }
    }

    #[test]
    fn thinking_is_made_of_tokens_too() {
        assert!(line_has_text(br#"data: {"choices":[{"delta":{"reasoning_content":"Hm"}}]}"#));
        assert!(!line_has_text(br#"data: {"choices":[{"delta":{"content":null}}]}"#));
    }
}
