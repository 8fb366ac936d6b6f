//! `POST /tokenize` and `/detokenize`, as vLLM and llama.cpp both answer them: a token is the number of
//! its first letter.

use axum::response::Response;
use serde::Deserialize;
use serde_json::json;

use super::answer;
use super::call::Call;
use super::refusal::Refusal;
use crate::words;

#[derive(Debug, Deserialize)]
struct TokenizeRequest {
    model: Option<String>,
    /// vLLM's word for the text.
    prompt: Option<String>,
    /// llama.cpp's.
    content: Option<String>,
}

#[derive(Debug, Deserialize)]
struct DetokenizeRequest {
    model: Option<String>,
    tokens: Vec<u32>,
}

/// Cuts a text into tokens.
pub(crate) async fn tokenize(call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    let request: TokenizeRequest = call.json()?;
    call.model(request.model.as_deref())?;
    let text = request.prompt.or(request.content);
    let text = text.ok_or_else(|| Refusal::bad_request("prompt or content: Field required"))?;
    let letter = |token: &&str| token.chars().next().map(u32::from);
    let tokens: Vec<u32> = words::tokens(&text).iter().filter_map(letter).collect();
    let body = json!({"count": tokens.len(), "tokens": tokens,
                      "max_model_len": call.engine.settings.context_window});
    Ok(answer::json(&call.turn, &body))
}

/// The letters that tokens are the numbers of.
pub(crate) async fn detokenize(call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    let request: DetokenizeRequest = call.json()?;
    call.model(request.model.as_deref())?;
    let text: String = request.tokens.iter().filter_map(|token| char::from_u32(*token)).collect();
    Ok(answer::json(&call.turn, &json!({"prompt": text, "content": text})))
}
