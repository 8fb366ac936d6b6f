//! `POST /v1/embeddings`: vectors in which texts that share words are near.

use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer;
use super::call::Call;
use super::completions::Prompts;
use super::refusal::Refusal;
use crate::vectors::embed;

/// Numbers in a vector unless the request says otherwise.
pub(super) const DIMENSIONS: usize = 384;
const MOST_DIMENSIONS: usize = 8_192;

#[derive(Debug, Deserialize)]
struct EmbeddingRequest {
    model: Option<String>,
    input: Prompts,
    encoding_format: Option<String>,
    dimensions: Option<usize>,
}

/// Answers with one vector for each text.
pub(crate) async fn create(call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    let request: EmbeddingRequest = call.json()?;
    let model = call.model(request.model.as_deref())?;
    let dimensions = request.dimensions.unwrap_or(DIMENSIONS);
    if !(1..=MOST_DIMENSIONS).contains(&dimensions) {
        let message = format!("dimensions must be from 1 to {MOST_DIMENSIONS}, got {dimensions}");
        return Err(Refusal::bad_request(&message));
    }
    let texts = request.input.texts();
    let tokens = call.read(&texts).await?;
    let packed = request.encoding_format.as_deref() == Some("base64");
    let vectors: Vec<Value> = (texts.iter().enumerate())
        .map(|(index, text)| {
            let vector = embed(&model, text, dimensions);
            let shown = if packed { json!(pack(&vector)) } else { json!(vector) };
            json!({"index": index, "object": "embedding", "embedding": shown})
        })
        .collect();
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0});
    let body = json!({"id": call.id("embd-"), "object": "list", "model": model, "data": vectors,
                      "usage": usage});
    Ok(answer::json(&call.turn, &body))
}

fn pack(vector: &[f32]) -> String {
    let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
    STANDARD.encode(bytes)
}
