//! The fields of a request that bound its answer. Which of them an engine heeds is another one for each API, so that
//! of several the largest is believed, and what the API called does not heed makes nothing smaller.

use std::ops::Range;

use super::demand::count;
use super::options;
use crate::backends::Api;
use crate::openai::Facts;
use crate::openai::facts::{Key, span_within};

/// Top-level fields that are a bound of some API.
const FIELDS: [Key; 4] =
    [Key::MaxCompletionTokens, Key::MaxOutputTokens, Key::MaxTokens, Key::NPredict];

/// The top-level fields by which a request to `api` bounds its answer; at Ollama's it is one of its options.
fn heeded(api: Api) -> &'static [Key] {
    match api {
        Api::Chat => &[Key::MaxTokens, Key::MaxCompletionTokens],
        Api::Completions | Api::Messages => &[Key::MaxTokens],
        Api::Responses => &[Key::MaxOutputTokens],
        Api::LlamaCppNative => &[Key::NPredict, Key::MaxTokens],
        _ => &[],
    }
}

/// Every bound of an answer that a request has, and where each number stands.
pub(super) fn bounds(facts: &Facts, body: &[u8]) -> impl Iterator<Item = (u64, Range<usize>)> {
    let all = texts(facts, body);
    all.filter_map(|(_, text)| Some((count(text)?, span_within(body, text))))
}

/// The largest bound of an answer that a request to `api` has, and whether it is certain that the answer is no longer: its API
/// heeds one of them, and none says that there is none.
pub(super) fn answer(api: Option<Api>, facts: &Facts, body: &[u8]) -> (Option<u64>, bool) {
    let (mut largest, mut heeds, mut endless) = (None, false, false);
    for (key, text) in texts(facts, body) {
        endless |= is_endless(text);
        let Some(count) = count(text) else { continue };
        largest = largest.max(Some(count));
        // Not every engine takes a string for a number.
        let is_number = !text.starts_with('"');
        heeds |= is_number
            && api.is_some_and(|api| match key {
                Key::Options => api == Api::OllamaNative,
                key => heeded(api).contains(&key),
            });
    }
    (largest, heeds && !endless)
}

/// The fields that may be bounds, with their JSON texts; Ollama's are among its options.
fn texts<'a>(facts: &Facts, body: &'a [u8]) -> impl Iterator<Item = (Key, &'a str)> {
    let fields = FIELDS.iter().filter_map(|key| Some((*key, facts.text(*key, body)?)));
    let options = options::num_predict(facts, body).into_iter();
    fields.chain(options.map(|text| (Key::Options, text)))
}

/// To llama.cpp and Ollama a number below zero says that there is no bound.
fn is_endless(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(|number| number < 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(api: Option<Api>, body: &str) -> (Option<u64>, bool) {
        answer(api, &Facts::read(body.as_bytes()).expect("readable"), body.as_bytes())
    }

    #[test]
    fn of_several_bounds_the_largest_counts_whatever_it_is_called() {
        for odd in ["null", "0", "-1", "0.5", "-1e2", "[7]", "\"\"", "\"-9\"", "\"x9\"", "\"inf\""]
        {
            assert_eq!(of(None, &format!(r#"{{"max_tokens":{odd}}}"#)).0, None, "{odd}");
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
            assert_eq!(of(None, body).0, answer, "{body}");
        }
        let long = "x".repeat(1 << 20);
        for options in [
            format!(r#"{{"num_predict":40,"x":"{long}"}}"#),
            format!(r#"{{"{long}":1,"num_predict":40}}"#),
        ] {
            assert_eq!(of(None, &format!(r#"{{"options":{options}}}"#)).0, Some(40));
        }
        let often = r#""num_predict":7,"#.repeat(1000);
        let often = format!(r#"{{"options":{{{often}"num_predict":40}}}}"#);
        assert_eq!(of(None, &often).0, Some(40));
    }

    #[test]
    fn what_its_api_does_not_heed_bounds_no_answer() {
        let options = r#"{"options":{"num_predict":9}}"#;
        for (api, body, bounded) in [
            (Api::Chat, r#"{"max_tokens":9}"#, true),
            (Api::Chat, r#"{"max_completion_tokens":9}"#, true),
            (Api::Chat, r#"{"max_output_tokens":9}"#, false),
            (Api::Chat, r#"{"max_tokens":"9"}"#, false),
            (Api::Chat, r#"{"n_predict":9}"#, false),
            (Api::Chat, r#"{"max_tokens":9,"n_predict":7}"#, true),
            (Api::Chat, r#"{"max_tokens":1,"n_predict":-1}"#, false),
            (Api::Chat, r#"{"max_tokens":1,"n_predict":-1.0}"#, false),
            (Api::Chat, r#"{"max_tokens":1,"options":{"num_predict":-2}}"#, false),
            (Api::Completions, r#"{"max_tokens":9}"#, true),
            (Api::Completions, r#"{"max_completion_tokens":9}"#, false),
            (Api::Messages, r#"{"max_tokens":9}"#, true),
            (Api::Responses, r#"{"max_output_tokens":9}"#, true),
            (Api::Responses, r#"{"max_tokens":9}"#, false),
            (Api::OllamaNative, r#"{"max_tokens":1}"#, false),
            (Api::OllamaNative, options, true),
            (Api::OllamaNative, r#"{"max_tokens":1,"options":{"num_predict":-1}}"#, false),
            (Api::Chat, options, false),
            (Api::LlamaCppNative, r#"{"n_predict":9}"#, true),
            (Api::LlamaCppNative, r#"{"max_tokens":9,"n_predict":-1}"#, false),
            (Api::Embeddings, r#"{"max_tokens":9}"#, false),
        ] {
            assert_eq!(of(Some(api), body).1, bounded, "{api} {body}");
        }
        assert!(!of(None, r#"{"max_tokens":1}"#).1, "nobody knows what heeds that");
    }
}
