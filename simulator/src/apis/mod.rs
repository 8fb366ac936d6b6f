//! Every API the engine speaks, one file each, and the table of their paths.

mod answer;
mod call;
mod chat;
mod health;
mod models;
mod prompt;
mod refusal;
mod responses;
mod tools;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};

pub(crate) use call::Turn;
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
        .fallback(health::no_such_path)
        .layer(DefaultBodyLimit::disable())
        .with_state(engine)
}
