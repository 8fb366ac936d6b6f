//! `POST /v1/rerank` and `/v1/score`: how near texts are to a question, by the words they share.

use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer;
use super::call::{Call, now};
use super::embeddings::DIMENSIONS;
use super::refusal::Refusal;
use crate::vectors::{embed, nearness};
use crate::words;

#[derive(Debug, Deserialize)]
struct RerankRequest {
    model: Option<String>,
    query: String,
    documents: Vec<Document>,
    top_n: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Document {
    Text(String),
    Object { text: String },
}

/// Answers with the documents, nearest first.
pub(crate) async fn rerank(call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    let request: RerankRequest = call.json()?;
    let model = call.model(request.model.as_deref())?;
    let documents: Vec<String> = (request.documents.into_iter())
        .map(|document| match document {
            Document::Text(text) | Document::Object { text } => text,
        })
        .collect();
    let tokens = call.read(&documents).await? + words::count(&request.query);
    let mut scored: Vec<(usize, f32)> =
        documents.iter().map(|text| score(&model, &request.query, text)).enumerate().collect();
    scored.sort_by(|one, other| other.1.total_cmp(&one.1));
    scored.truncate(request.top_n.filter(|top| *top > 0).unwrap_or(usize::MAX));
    let results: Vec<Value> = (scored.iter())
        .map(|(index, score)| {
            let document = json!({"text": documents.get(*index)});
            json!({"index": index, "relevance_score": score, "document": document})
        })
        .collect();
    let body = json!({"id": call.id("rerank-"), "model": model, "results": results,
                      "usage": {"total_tokens": tokens}});
    Ok(answer::json(&call.turn, &body))
}

#[derive(Debug, Deserialize)]
struct ScoreRequest {
    model: Option<String>,
    text_1: Texts,
    text_2: Texts,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    Several(Vec<String>),
}

impl Texts {
    fn list(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Several(texts) => texts,
        }
    }
}

/// Answers with the nearness of each pair; a single first text is paired with every second one.
pub(crate) async fn score_pairs(call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    let request: ScoreRequest = call.json()?;
    let model = call.model(request.model.as_deref())?;
    let (first, second) = (request.text_1.list(), request.text_2.list());
    if first.len() != 1 && first.len() != second.len() {
        return Err(Refusal::bad_request("text_1 must be one text, or as many as text_2"));
    }
    let tokens =
        call.read(&first).await? + second.iter().map(|text| words::count(text)).sum::<usize>();
    let pairs = first.iter().cycle().zip(&second).enumerate();
    let scores: Vec<Value> = pairs
        .map(|(index, (one, other))| {
            json!({"index": index, "object": "score", "score": score(&model, one, other)})
        })
        .collect();
    let body = json!({"id": call.id("score-"), "object": "list", "created": now(), "model": model,
                      "data": scores, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}});
    Ok(answer::json(&call.turn, &body))
}

/// From 0 to 1.
fn score(model: &str, query: &str, text: &str) -> f32 {
    let embed = |text| embed(model, text, DIMENSIONS);
    f32::midpoint(nearness(&embed(query), &embed(text)), 1.0).clamp(0.0, 1.0)
}
