//! Looks whether a request is well-formed before an engine is woken for it (`PROXY_VALIDATE_REQUESTS`).
//! Only what is certainly wrong is refused: contents may be texts or lists of parts, fields that are
//! not known are passed on, and what is null counts as not there.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::backends::Api;

/// What is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The first field that is wrong.
    pub field: &'static str,
    /// What it must be.
    pub expected: &'static str,
    /// How many more fields are wrong.
    pub others: usize,
}

const ROLES: [&str; 6] = ["developer", "system", "user", "assistant", "tool", "function"];

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    temperature: Option<&'a RawValue>,
    #[serde(borrow)]
    top_p: Option<&'a RawValue>,
    #[serde(borrow)]
    presence_penalty: Option<&'a RawValue>,
    #[serde(borrow)]
    frequency_penalty: Option<&'a RawValue>,
    #[serde(borrow)]
    n: Option<&'a RawValue>,
    #[serde(borrow)]
    max_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    max_completion_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    best_of: Option<&'a RawValue>,
    #[serde(borrow)]
    logprobs: Option<&'a RawValue>,
    #[serde(borrow)]
    encoding_format: Option<&'a RawValue>,
    #[serde(borrow)]
    dimensions: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Option<Cow<'a, str>>,
}

/// Whether the JSON `body` of a call of `api` is well-formed. Other APIs than chat, completions and
/// embeddings are not looked at.
pub fn validate(api: Api, body: &str) -> Result<(), Invalid> {
    if !matches!(api, Api::Chat | Api::Completions | Api::Embeddings) {
        return Ok(());
    }
    let body = body.trim_start_matches('\u{feff}');
    let Ok(request) = serde_json::from_str::<Request<'_>>(body) else {
        // The body was read before: what fails now is a field that stands there twice.
        return Err(Invalid {
            field: "body",
            expected: "an object with each field once",
            others: 0,
        });
    };
    let mut wrong = Vec::new();
    match api {
        Api::Chat => chat(&request, &mut wrong),
        Api::Completions => completions(&request, &mut wrong),
        _ => embeddings(&request, &mut wrong),
    }
    match wrong.split_first() {
        None => Ok(()),
        Some(((field, expected), others)) => Err(Invalid { field, expected, others: others.len() }),
    }
}

type Wrong = Vec<(&'static str, &'static str)>;

fn chat(request: &Request<'_>, wrong: &mut Wrong) {
    match request.messages.map(|raw| serde_json::from_str::<Vec<Message<'_>>>(raw.get())) {
        Some(Ok(messages)) if !messages.is_empty() => {
            let known = |message: &Message<'_>| {
                message.role.as_deref().is_some_and(|role| ROLES.contains(&role))
            };
            if !messages.iter().all(known) {
                let expected =
                    "one of developer, system, user, assistant, tool and function in every message";
                wrong.push(("role", expected));
            }
        }
        _ => wrong.push(("messages", "a list of messages that is not empty")),
    }
    sampling(request, wrong);
    let penalty = "a number from -2 to 2";
    within(request.presence_penalty, "presence_penalty", -2.0..=2.0, penalty, wrong);
    within(request.frequency_penalty, "frequency_penalty", -2.0..=2.0, penalty, wrong);
}

fn completions(request: &Request<'_>, wrong: &mut Wrong) {
    sampling(request, wrong);
    at_least(request.best_of, "best_of", 1, wrong);
    at_least(request.logprobs, "logprobs", 0, wrong);
}

fn embeddings(request: &Request<'_>, wrong: &mut Wrong) {
    if request.input.is_none() {
        wrong.push(("input", "there: a text, or a list of texts or tokens"));
    }
    if request.encoding_format.is_some_and(|raw| !matches!(raw.get(), "\"float\"" | "\"base64\"")) {
        wrong.push(("encoding_format", "float or base64"));
    }
    at_least(request.dimensions, "dimensions", 1, wrong);
}

fn sampling(request: &Request<'_>, wrong: &mut Wrong) {
    within(request.temperature, "temperature", 0.0..=2.0, "a number from 0 to 2", wrong);
    within(request.top_p, "top_p", 0.0..=1.0, "a number from 0 to 1", wrong);
    at_least(request.n, "n", 1, wrong);
    at_least(request.max_tokens, "max_tokens", 1, wrong);
    at_least(request.max_completion_tokens, "max_completion_tokens", 1, wrong);
}

fn within(
    raw: Option<&RawValue>,
    field: &'static str,
    range: std::ops::RangeInclusive<f64>,
    expected: &'static str,
    wrong: &mut Wrong,
) {
    let fits = |raw: &RawValue| raw.get().parse().is_ok_and(|number: f64| range.contains(&number));
    if raw.is_some_and(|raw| !fits(raw)) {
        wrong.push((field, expected));
    }
}

fn at_least(raw: Option<&RawValue>, field: &'static str, least: i64, wrong: &mut Wrong) {
    let fits = |raw: &RawValue| raw.get().parse().is_ok_and(|count: i64| count >= least);
    if raw.is_some_and(|raw| !fits(raw)) {
        let expected =
            if least == 0 { "a whole number, 0 or more" } else { "a whole number, 1 or more" };
        wrong.push((field, expected));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(api: Api, body: &str) -> Option<(&'static str, usize)> {
        validate(api, body).err().map(|invalid| (invalid.field, invalid.others))
    }

    #[test]
    fn what_is_well_formed_passes() {
        for body in [
            r#"{"messages":[{"role":"user","content":"hi"}]}"#,
            r#"{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]}"#,
            r#"{"messages":[{"role":"developer","content":null,"later":1}],"unknown":{"a":1}}"#,
            r#"{"messages":[{"role":"tool"}],"temperature":2,"top_p":1.0,"n":1,"max_tokens":null}"#,
        ] {
            assert_eq!(wrong(Api::Chat, body), None, "{body}");
        }
        assert_eq!(wrong(Api::Completions, r#"{"logprobs":0}"#), None);
        assert_eq!(wrong(Api::Embeddings, r#"{"input":"x","encoding_format":"base64"}"#), None);
        assert_eq!(wrong(Api::Rerank, r#"{"n":0}"#), None, "not looked at");
    }

    #[test]
    fn what_is_not_is_told_with_the_number_of_its_faults() {
        let messages = r#""messages":[{"role":"user","content":"hi"}]"#;
        for (field, value) in [
            ("temperature", "2.1"),
            ("temperature", "\"1\""),
            ("top_p", "-0.1"),
            ("n", "0"),
            ("n", "1.5"),
            ("max_tokens", "0"),
            ("max_completion_tokens", "-1"),
            ("presence_penalty", "3"),
            ("frequency_penalty", "-2.5"),
        ] {
            let body = format!(r#"{{{messages},"{field}":{value}}}"#);
            assert_eq!(wrong(Api::Chat, &body), Some((field, 0)), "{body}");
        }
        assert_eq!(wrong(Api::Chat, r#"{"messages":[],"n":0,"top_p":9}"#), Some(("messages", 2)));
        assert_eq!(wrong(Api::Chat, "{}"), Some(("messages", 0)));
        assert_eq!(wrong(Api::Chat, r#"{"messages":[{"role":"robot"}]}"#), Some(("role", 0)));
        assert_eq!(wrong(Api::Completions, r#"{"best_of":0,"logprobs":-1}"#), Some(("best_of", 1)));
        assert_eq!(wrong(Api::Embeddings, r#"{"dimensions":0}"#), Some(("input", 1)));
        assert_eq!(
            wrong(Api::Embeddings, r#"{"input":1,"encoding_format":"hex"}"#),
            Some(("encoding_format", 0))
        );
    }

    #[test]
    fn a_field_that_stands_there_twice_is_refused() {
        assert_eq!(wrong(Api::Chat, r#"{"n":1,"n":2}"#), Some(("body", 0)));
    }
}
