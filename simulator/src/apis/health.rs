//! What operators and gateways ask about the engine itself.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde_json::{Value, json};

use super::call::Call;
use super::refusal::Refusal;
use crate::engine::{Engine, Phase};

/// `GET /health`: 200 once loaded, before that 503, as llama-server does.
pub(crate) async fn health(call: Call) -> Response {
    if call.turn.faults.garbage_health {
        call.turn.wire.write_garbage();
    }
    let phase = call.engine.phase.borrow().clone();
    let (status, body) = match phase {
        Phase::Ready => (StatusCode::OK, json!({"status": "ok"})),
        Phase::Loading(_) if call.engine.settings.loading_faults.lies_about_readiness => {
            (StatusCode::OK, json!({"status": "ok"}))
        }
        Phase::Loading(share) => {
            let progress = json!({"status": "loading", "progress": share});
            (StatusCode::SERVICE_UNAVAILABLE, progress)
        }
        Phase::Dead(reason) => {
            (StatusCode::SERVICE_UNAVAILABLE, json!({"status": "dead", "reason": reason}))
        }
    };
    as_json(status, &body)
}

/// `GET /metrics` under vLLM's names.
pub(crate) async fn metrics(State(engine): State<Arc<Engine>>) -> Response {
    let page = engine.metrics.page(engine.own_name(), &engine.gauges());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page).into_response()
}

/// `GET /simulate/requests`: the request log, where it is kept.
pub(crate) async fn requests(State(engine): State<Arc<Engine>>) -> Result<Response, Refusal> {
    if !engine.log.is_on() {
        return Err(Refusal::NotFound("requests are not kept; start with --log-requests".into()));
    }
    Ok(as_json(StatusCode::OK, &engine.log.to_json()))
}

/// Every other path, in FastAPI's words.
pub(crate) async fn no_such_path() -> Response {
    as_json(StatusCode::NOT_FOUND, &json!({"detail": "Not Found"}))
}

fn as_json(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
