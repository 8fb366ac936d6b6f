//! Every API the engine speaks, one file each, and the table of their paths.

mod answer;
mod anthropic;
mod audio;
mod call;
mod chat;
mod comfyui;
mod completions;
mod embeddings;
mod form;
mod health;
mod images;
mod lora;
mod models;
mod moderations;
mod ollama;
mod prompt;
mod realtime;
mod refusal;
mod rerank;
mod responses;
mod stable_diffusion;
mod tokens;
mod tools;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};

pub(crate) use call::Turn;
pub(crate) use comfyui::Studio;
pub(crate) use refusal::Refusal;
pub(crate) use responses::StoredResponses;

use crate::engine::Engine;

/// The table of paths.
pub(crate) fn router(engine: Arc<Engine>) -> Router {
    Router::new()
        .route("/health", get(health::health))
        .route("/metrics", get(health::metrics))
        .route("/simulate/requests", get(health::requests))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*name}", get(models::one))
        .route("/v1/chat/completions", post(chat::create))
        .route("/v1/completions", post(completions::create))
        .route("/v1/embeddings", post(embeddings::create))
        .route("/v1/responses", post(responses::create))
        .route("/v1/responses/{id}", get(responses::show).delete(responses::delete))
        .route("/v1/responses/{id}/cancel", post(responses::cancel))
        .route("/v1/realtime", get(realtime::open))
        .route("/v1/images/generations", post(images::generate))
        .route("/v1/images/edits", post(images::edit))
        .route("/v1/audio/speech", post(audio::speech))
        .route("/v1/audio/transcriptions", post(audio::transcribe))
        .route("/v1/audio/translations", post(audio::translate))
        .route("/v1/moderations", post(moderations::create))
        .route("/rerank", post(rerank::rerank))
        .route("/v1/rerank", post(rerank::rerank))
        .route("/v2/rerank", post(rerank::rerank))
        .route("/score", post(rerank::score_pairs))
        .route("/v1/score", post(rerank::score_pairs))
        .route("/v1/messages", post(anthropic::create))
        .route("/v1/messages/count_tokens", post(anthropic::count_tokens))
        .route("/tokenize", post(tokens::tokenize))
        .route("/detokenize", post(tokens::detokenize))
        .route("/v1/load_lora_adapter", post(lora::load))
        .route("/v1/unload_lora_adapter", post(lora::unload))
        .merge(ollama::router())
        .merge(stable_diffusion::router())
        .merge(comfyui::router())
        .fallback(health::no_such_path)
        .layer(DefaultBodyLimit::disable())
        .with_state(engine)
}
