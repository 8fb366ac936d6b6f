//! Finding the JSON in what a tool printed around it: warnings before it, notices after it.

use serde_json::Value;

use crate::hardware::ProbeFailure;

/// The most that is looked at. A listing of 64 GPUs has some hundred kilobytes.
const LIMIT: usize = 8 << 20;

/// The most places that are tried as the beginning of the JSON.
const TRIES: usize = 64;

/// The first JSON object or array of objects in `output`.
pub(super) fn json(source: &str, output: &str) -> Result<Value, ProbeFailure> {
    if output.len() > LIMIT {
        return Err(ProbeFailure::unreadable(
            source,
            format!("it is longer than {} MiB", LIMIT >> 20),
        ));
    }
    let beginnings = output.match_indices(['{', '[']).map(|(at, _)| at).take(TRIES);
    for text in beginnings.filter_map(|at| output.get(at..)) {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        if let Some(Ok(value)) = values.next()
            && (value.is_object() || value.pointer("/0").is_some_and(Value::is_object))
        {
            return Ok(value);
        }
    }
    let said = output.lines().map(str::trim).find(|line| !line.is_empty());
    Err(ProbeFailure::unreadable(
        source,
        match said {
            Some(line) => format!(
                "it has no JSON; it begins `{}`",
                line.chars().take(120).collect::<String>()
            ),
            None => "it is empty".to_owned(),
        },
    ))
}
