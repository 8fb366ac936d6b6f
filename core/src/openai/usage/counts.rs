//! The `usage` object in the words of the APIs that have one.

use serde_json::{Map, Value};

use crate::openai::skim::Skimmer;

/// Token counts, where given.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) prompt: Option<u64>,
    pub(super) completion: Option<u64>,
    pub(super) cached: Option<u64>,
}

/// Reads the object that `value` begins with; of a repeated key the last counts. Fails with an error
/// that `is_eof` where the object goes on beyond `value`.
pub(super) fn read(value: &[u8]) -> Result<Counts, serde_json::Error> {
    skimmed(value).map_or_else(|| parsed(value), Ok)
}

/// The object as all engines write it, which is read once for every answer; `None` for any other.
fn skimmed(value: &[u8]) -> Option<Counts> {
    let text = |span| value.get(span).unwrap_or_default();
    let [mut prompt, mut input, mut completion, mut output] = [None; 4];
    let [mut in_prompt, mut in_input, mut cache_read] = [None; 3];
    let mut skimmer = Skimmer::new(value);
    skimmer.object(|key, span| {
        match key {
            b"prompt_tokens" => prompt = count(text(span)),
            b"input_tokens" => input = count(text(span)),
            b"completion_tokens" => completion = count(text(span)),
            b"output_tokens" => output = count(text(span)),
            b"prompt_tokens_details" => in_prompt = cached(text(span)),
            b"input_tokens_details" => in_input = cached(text(span)),
            b"cache_read_input_tokens" => cache_read = count(text(span)),
            _ => {}
        }
        Some(())
    })?;
    // What is no text is for the parser to refuse.
    text(0..skimmer.at()).is_ascii().then_some(Counts {
        prompt: prompt.or(input),
        completion: completion.or(output),
        cached: in_prompt.or(in_input).or(cache_read),
    })
}

fn count(number: &[u8]) -> Option<u64> {
    std::str::from_utf8(number).ok()?.parse().ok()
}

fn cached(details: &[u8]) -> Option<u64> {
    let mut cached = None;
    let look = |key: &[u8], span| {
        if key == b"cached_tokens" {
            cached = count(details.get(span)?);
        }
        Some(())
    };
    Skimmer::new(details).object(look)?;
    cached
}

fn parsed(value: &[u8]) -> Result<Counts, serde_json::Error> {
    let mut values = serde_json::Deserializer::from_slice(value).into_iter::<Map<String, Value>>();
    let object = values.next().transpose()?.unwrap_or_default();
    let count = |name: &str| object.get(name).and_then(Value::as_u64);
    let cached_of = |details: &str| object.get(details)?.get("cached_tokens")?.as_u64();
    Ok(Counts {
        // Chat, completions, embeddings; then responses and Anthropic's messages.
        prompt: count("prompt_tokens").or_else(|| count("input_tokens")),
        completion: count("completion_tokens").or_else(|| count("output_tokens")),
        cached: cached_of("prompt_tokens_details")
            .or_else(|| cached_of("input_tokens_details"))
            .or_else(|| count("cache_read_input_tokens")),
    })
}
