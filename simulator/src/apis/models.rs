//! `GET /v1/models` and `/v1/models/{name}`: the engine's names and its adapters.

use axum::extract::Path;
use axum::response::Response;
use serde_json::{Value, json};

use super::answer;
use super::call::Call;
use super::refusal::Refusal;
use crate::engine::Engine;

/// All names.
pub(crate) async fn list(call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    let cards = cards(&call.engine);
    Ok(answer::json(&call.turn, &json!({"object": "list", "data": cards})))
}

/// One of them.
pub(crate) async fn one(Path(name): Path<String>, call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    let card = cards(&call.engine).into_iter().find(|card| card["id"] == name.as_str());
    match card {
        Some(card) => Ok(answer::json(&call.turn, &card)),
        None => Err(Refusal::NoSuchModel(name)),
    }
}

fn cards(engine: &Engine) -> Vec<Value> {
    let card = |id: &str, root: &str, parent: Option<&str>| {
        json!({
            "id": id,
            "object": "model",
            "created": 0,
            "owned_by": "flexinfer-simulator",
            "root": root,
            "parent": parent,
            "max_model_len": engine.settings.context_window,
        })
    };
    let own = engine.settings.models.iter().map(|name| card(name, name, None));
    let adapters = engine.adapters.lock();
    let adapted = adapters.iter().map(|(name, path)| card(name, path, Some(engine.own_name())));
    own.chain(adapted).collect()
}
