//! How many tokens a request may take, told from its body alone and therefore an estimate: a token for
//! every four bytes of text, and for the answer what the request allows. Settled later by what the
//! engine says it was.

use memchr::{memchr, memchr_iter};

use super::bounds;
use crate::backends::Api;
use crate::openai::Facts;
use crate::openai::facts::Key;

/// Bytes of text for a token, in most languages and tokenizers.
const BYTES_PER_TOKEN: u64 = 4;
/// A string without a blank that is longer, in bytes, is no text but an encoded image or sound.
pub const LONGEST_WORD: usize = 1024;
/// What such a string is counted as, in tokens.
pub const OPAQUE_TOKENS: u64 = 256;

const PROMPT: [Key; 10] = [
    Key::Messages,
    Key::System,
    Key::Instructions,
    Key::Prompt,
    Key::Input,
    Key::Documents,
    Key::DocumentContext,
    Key::DocumentContextCamel,
    Key::Context,
    Key::Prefix,
];
/// The tokens that a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Of its prompt.
    pub prompt: u64,
    /// Of one answer, by the largest bound that the request has.
    pub answer: Option<u64>,
    /// Whether its API heeds one of those bounds, so that no answer is longer.
    pub bounded: bool,
    /// How many answers it asks for; at least one.
    pub answers: u64,
}

impl Demand {
    /// Of a request that says nothing of it.
    pub const UNKNOWN: Self = Self { prompt: 0, answer: None, bounded: false, answers: 1 };

    /// What the JSON `body`, which `facts` were read from, asks for of `api`, if that is known.
    pub fn of(api: Option<Api>, facts: &Facts, body: &[u8]) -> Self {
        let texts = PROMPT.iter().filter_map(|key| facts.bytes(*key, body));
        let count = |key| count(facts.text(key, body)?);
        let (answer, bounded) = bounds::answer(api, facts, body);
        Self {
            prompt: texts.map(tokens).sum(),
            answer,
            bounded,
            answers: count(Key::N).max(count(Key::BestOf)).unwrap_or(1).max(1),
        }
    }

    /// All tokens together; `default` is for an answer without a bound that counts.
    pub fn total(&self, default: u64) -> u64 {
        let least = if self.bounded { 0 } else { default };
        let answer = self.answer.unwrap_or_default().max(least);
        self.prompt.saturating_add(answer.saturating_mul(self.answers))
    }
}

/// The number above zero that the JSON text `text` is, if it is one, without what is behind its point: engines take `1e6`
/// and `9000.0`, too, and some of them the same as a string.
pub(super) fn count(text: &str) -> Option<u64> {
    if !text.starts_with('"') {
        return number(text);
    }
    // As Python reads a number: with blanks around it, a sign, and `_` between its digits.
    let string = serde_json::from_str::<String>(text).ok()?.replace('_', "");
    let digits = string.trim().trim_start_matches('+');
    number(digits).filter(|_| digits.starts_with(|first: char| first.is_ascii_digit()))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is below zero becomes 0, and what is too large as large as can be"
)]
fn number(text: &str) -> Option<u64> {
    let number = text.parse().ok().or_else(|| Some(text.parse::<f64>().ok()? as u64));
    number.filter(|number| *number > 0)
}

/// The tokens of a JSON value: of its strings, with a little for what holds them together.
fn tokens(json: &[u8]) -> u64 {
    let (mut bytes, mut opaque) = (0_usize, 0_u64);
    let mut rest = json;
    while let Some(at) = memchr(b'"', rest) {
        let content = rest.get(at + 1..).unwrap_or_default();
        let length = string_length(content);
        let string = content.get(..length).unwrap_or_default();
        if is_opaque(string) {
            opaque += OPAQUE_TOKENS;
        } else {
            bytes += length;
        }
        rest = content.get(length + 1..).unwrap_or_default();
    }
    // Numbers are prompts too: arrays of token ids.
    if bytes == 0 && opaque == 0 {
        return memchr_iter(b',', json).count() as u64 + 1;
    }
    (bytes as u64).div_ceil(BYTES_PER_TOKEN).saturating_add(opaque)
}

/// The length of the string whose content `rest` begins with.
fn string_length(rest: &[u8]) -> usize {
    let mut from = 0;
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest.get(from..).unwrap_or_default()) {
        match rest.get(from + at) {
            Some(b'\\') => from += at + 2,
            _ => return from + at,
        }
    }
    rest.len()
}

fn is_opaque(string: &[u8]) -> bool {
    string.len() > LONGEST_WORD && memchr(b' ', string).is_none() && string.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(body: &str) -> Demand {
        let facts = Facts::read(body.as_bytes()).expect("readable");
        Demand::of(Some(Api::Chat), &facts, body.as_bytes())
    }

    #[test]
    fn text_counts_by_its_length_wherever_it_stands() {
        let chat = demand(r#"{"model":"m","messages":[{"role":"user","content":"12345678"}]}"#);
        // The words `role`, `user`, `content` stand for what a chat template adds.
        assert_eq!(chat.prompt, 6);
        let parts = r#"{"messages":[{"content":[{"type":"text","text":"12345678"}]}]}"#;
        assert!(demand(parts).prompt >= 2);
        assert_eq!(demand(r#"{"prompt":"1234\"678"}"#).prompt, 3);
        assert_eq!(demand(r#"{"input":[1,2,3,4]}"#).prompt, 4);
        assert_eq!(demand(r#"{"other":"text"}"#).prompt, 0);
    }

    #[test]
    fn an_image_is_not_counted_as_text() {
        let image = "A".repeat(1 << 20);
        let body = format!(r#"{{"messages":[{{"image_url":"data:image/png;base64,{image}"}}]}}"#);
        assert!(demand(&body).prompt < OPAQUE_TOKENS + 10);
        let chinese = "你".repeat(1000);
        assert_eq!(demand(&format!(r#"{{"prompt":"{chinese}"}}"#)).prompt, 750);
    }

    #[test]
    fn the_answer_is_what_the_request_allows() {
        let body = r#"{"max_tokens":9,"max_completion_tokens":7,"n":3,"prompt":"1234"}"#;
        assert_eq!(demand(body).total(256), 1 + 9 * 3);
        assert_eq!(demand(r#"{"prompt":"1234"}"#).total(256), 257);
        let huge = format!(r#"{{"max_tokens":{},"n":{}}}"#, u64::MAX, u64::MAX);
        assert_eq!(demand(&huge).total(1), u64::MAX);
    }
}
