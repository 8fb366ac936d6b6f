//! `POST /v1/moderations`: flags a few plain words, enough to see both answers.

use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::answer;
use super::call::Call;
use super::completions::Prompts;
use super::refusal::Refusal;

/// Category and the words that flag it.
const CATEGORIES: &[(&str, &[&str])] = &[
    ("harassment", &["idiot", "stupid"]),
    ("hate", &["hate"]),
    ("illicit", &["steal", "heroin"]),
    ("self-harm", &["suicide"]),
    ("sexual", &["porn"]),
    ("violence", &["kill", "attack", "murder"]),
];

#[derive(Debug, Deserialize)]
struct ModerationRequest {
    model: Option<String>,
    input: Prompts,
}

/// Answers with one verdict for each text.
pub(crate) async fn create(call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    let request: ModerationRequest = call.json()?;
    let model = call.model(request.model.as_deref())?;
    let texts = request.input.texts();
    call.read(&texts).await?;
    let results: Vec<Value> = texts.iter().map(|text| verdict(text)).collect();
    let body = json!({"id": call.id("modr-"), "model": model, "results": results});
    Ok(answer::json(&call.turn, &body))
}

fn verdict(text: &str) -> Value {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
    let mut categories = Map::new();
    let mut scores = Map::new();
    let mut flagged = false;
    for (category, bad) in CATEGORIES {
        let hit = words.iter().any(|word| bad.contains(word));
        flagged |= hit;
        categories.insert((*category).to_owned(), json!(hit));
        scores.insert((*category).to_owned(), json!(if hit { 0.97 } else { 0.01 }));
    }
    json!({"flagged": flagged, "categories": categories, "category_scores": scores})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_word_is_flagged_and_a_longer_word_is_not() {
        assert_eq!(verdict("I will KILL it.")["categories"]["violence"], true);
        assert_eq!(verdict("a new skill")["flagged"], false);
    }
}
