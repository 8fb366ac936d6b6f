//! The `usage` object in the words of the APIs that have one.

use serde_json::{Map, Value};

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
