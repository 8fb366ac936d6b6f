//! How many tokens a request may take, told from its body alone and therefore an estimate: a token for
//! every four bytes of text, and for the answer what the request allows. Settled later by what the
//! engine says it was.

use std::ops::Range;

use memchr::{memchr, memchr_iter};

use super::options;
use crate::openai::Facts;
use crate::openai::facts::{Key, span_within};

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
/// The fields that bound an answer. Which of them counts is another one for each engine, so that of several the largest
/// is believed. In those of llama.cpp and Ollama a number below zero is no bound.
const BOUNDS: [Key; 4] =
    [Key::MaxCompletionTokens, Key::MaxOutputTokens, Key::MaxTokens, Key::NPredict];

/// The tokens that a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Of its prompt.
    pub prompt: u64,
    /// Of one answer, where the request bounds it: by the largest of its bounds.
    pub answer: Option<u64>,
    /// How many answers it asks for; at least one.
    pub answers: u64,
}

impl Demand {
    /// Of a request that says nothing of it.
    pub const UNKNOWN: Self = Self { prompt: 0, answer: None, answers: 1 };

    /// What the JSON `body`, which `facts` were read from, asks for.
    pub fn of(facts: &Facts, body: &[u8]) -> Self {
        let texts = PROMPT.iter().filter_map(|key| facts.bytes(*key, body));
        let count = |key| count(facts.text(key, body)?);
        Self {
            prompt: texts.map(tokens).sum(),
            answer: bounds(facts, body).map(|(count, _)| count).max(),
            answers: count(Key::N).max(count(Key::BestOf)).unwrap_or(1).max(1),
        }
    }

    /// All tokens together; `default` is for an answer without a bound.
    pub fn total(&self, default: u64) -> u64 {
        let answer = self.answer.unwrap_or(default);
        self.prompt.saturating_add(answer.saturating_mul(self.answers))
    }
}

/// Every bound of an answer that a request has, and where each number stands.
pub(super) fn bounds(facts: &Facts, body: &[u8]) -> impl Iterator<Item = (u64, Range<usize>)> {
    let fields = BOUNDS.iter().filter_map(|key| facts.text(*key, body));
    let all = fields.chain(options::num_predict(facts, body));
    all.filter_map(|text| Some((count(text)?, span_within(body, text))))
}

/// The number above zero that the JSON text `text` is, if it is one, without what is behind its point: engines take `1e6`
/// and `9000.0`, too, and some of them the same as a string.
fn count(text: &str) -> Option<u64> {
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
        Demand::of(&Facts::read(body.as_bytes()).expect("readable"), body.as_bytes())
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
        for odd in ["null", "0", "-1", "0.5", "-1e2", "[7]", "\"\"", "\"-9\"", "\"x9\"", "\"inf\""]
        {
            assert_eq!(demand(&format!(r#"{{"max_tokens":{odd}}}"#)).answer, None, "{odd}");
        }
        for (body, answer) in [
            (r#"{"options":{"temperature":0,"num_predict":40}}"#, Some(40)),
            (r#"{"options":{"num_predict":-1}}"#, None),
            (r#"{"options":null}"#, None),
            (r#"{"options":{"num_predict":7,"num_predict":40}}"#, Some(40)),
            (r#"{"n_predict":30}"#, Some(30)),
            (r#"{"n_predict":-1}"#, None),
            (r#"{"max_tokens":1,"n_predict":-1}"#, Some(1)),
            (r#"{"max_tokens":1,"options":{"num_predict":100000}}"#, Some(100_000)),
            (r#"{"max_tokens":1,"n_predict":100000}"#, Some(100_000)),
            (r#"{"max_tokens":1e6}"#, Some(1_000_000)),
            (r#"{"options":{"num_predict":9000.5}}"#, Some(9000)),
            (r#"{"max_tokens":99999999999999999999}"#, Some(u64::MAX)),
            (r#"{"max_tokens":"100000"}"#, Some(100_000)),
            (r#"{"max_tokens":1,"max_completion_tokens":" \u002b1_00_000.0\n"}"#, Some(100_000)),
            (r#"{"options":{"\ud800":0,"num_predict":100000}}"#, Some(100_000)),
            (r#"{"options":{"num_predict\ud800":9,"x":"\ud800","num_predict":7}}"#, Some(7)),
        ] {
            assert_eq!(demand(body).answer, answer, "{body}");
        }
        let long = "x".repeat(1 << 20);
        for options in [
            format!(r#"{{"num_predict":40,"x":"{long}"}}"#),
            format!(r#"{{"{long}":1,"num_predict":40}}"#),
        ] {
            assert_eq!(demand(&format!(r#"{{"options":{options}}}"#)).answer, Some(40));
        }
        let often = r#""num_predict":7,"#.repeat(1000);
        let often = format!(r#"{{"options":{{{often}"num_predict":40}}}}"#);
        assert_eq!(demand(&often).answer, Some(40));
        let huge = format!(r#"{{"max_tokens":{},"n":{}}}"#, u64::MAX, u64::MAX);
        assert_eq!(demand(&huge).total(1), u64::MAX);
    }
}
