//! ComfyUI's API: a graph is queued, its client hears over a socket how far it is, its history tells what
//! came of it, and `/view` hands out the pictures. Every path is also served below `/api`.

mod graph;
mod job;
mod nodes;
mod refused;
mod socket;
mod studio;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer;
use super::call::Call;
use super::form::Form;
use super::refusal::Refusal;
use crate::engine::Engine;
use graph::Graph;
use job::Job;
use refused::Refused;
pub(crate) use studio::Studio;
use studio::{Place, Shelf};

#[derive(Debug, Deserialize)]
struct PromptRequest {
    prompt: Value,
    client_id: Option<String>,
}

/// What is to be forgotten: all of it, or these prompts.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Forgotten {
    clear: bool,
    delete: Vec<String>,
}

/// The paths of this API.
pub(super) fn router() -> Router<Arc<Engine>> {
    let paths = Router::new()
        .route("/ws", get(socket::open))
        .route("/prompt", post(queue_prompt).get(state))
        .route("/queue", get(queue).post(forget_queued))
        .route("/interrupt", post(interrupt))
        .route("/history", get(history).post(forget_done))
        .route("/history/{id}", get(history_of))
        .route("/view", get(view))
        .route("/upload/image", post(upload))
        .route("/upload/mask", post(upload))
        .route("/object_info", get(object_info))
        .route("/object_info/{class}", get(object_info_of))
        .route("/system_stats", get(system_stats));
    Router::new().nest("/api", paths.clone()).merge(paths)
}

/// Takes a graph into the queue; its nodes run one graph after the other.
async fn queue_prompt(call: Call) -> Result<Response, Refused> {
    call.admit()?;
    let request: PromptRequest = call.json()?;
    let studio = &call.engine.studio;
    let graph = Graph::read(&request.prompt, |image| studio.holds(&Place::input(image)))?;
    let id = call.id("prompt-");
    let number = studio.queue(Job::new(id.clone(), request.client_id, request.prompt, graph));
    studio::work(&call.engine);
    let body = json!({"prompt_id": id, "number": number, "node_errors": {}});
    Ok(answer::json(&call.turn, &body))
}

async fn state(call: Call) -> Response {
    answer::json(&call.turn, &call.engine.studio.state())
}

async fn queue(call: Call) -> Response {
    answer::json(&call.turn, &call.engine.studio.queued())
}

async fn forget_queued(call: Call) -> Result<Response, Refused> {
    let forgotten: Forgotten = call.json()?;
    call.engine.studio.forget(Shelf::Queue, forgotten.clear, &forgotten.delete);
    Ok(empty(&call))
}

async fn forget_done(call: Call) -> Result<Response, Refused> {
    let forgotten: Forgotten = call.json()?;
    call.engine.studio.forget(Shelf::History, forgotten.clear, &forgotten.delete);
    Ok(empty(&call))
}

async fn interrupt(call: Call) -> Response {
    call.engine.studio.interrupt();
    empty(&call)
}

fn empty(call: &Call) -> Response {
    answer::bytes(&call.turn, "application/octet-stream", bytes::Bytes::new())
}

async fn history(call: Call) -> Response {
    answer::json(&call.turn, &call.engine.studio.history())
}

/// Nothing where nothing is known, as ComfyUI has it.
async fn history_of(Path(id): Path<String>, call: Call) -> Response {
    let told = call.engine.studio.history_of(&id);
    answer::json(&call.turn, &told.map_or_else(|| json!({}), |told| json!({ id: told })))
}

async fn view(Query(place): Query<Place>, call: Call) -> Result<Response, Refusal> {
    let picture = call.engine.studio.picture(&place);
    let picture =
        picture.ok_or_else(|| Refusal::NotFound(format!("no file {}", place.filename)))?;
    Ok(answer::bytes(&call.turn, "image/png", picture))
}

/// Keeps a picture; one of the same name and another content gets a new name.
async fn upload(call: Call) -> Result<Response, Refused> {
    let form = Form::read(&call).await?;
    let part = form.needed("image")?;
    let place = Place {
        filename: part.file_name.clone().unwrap_or_else(|| "image.png".to_owned()),
        subfolder: form.text("subfolder").unwrap_or_default(),
        kind: form.text("type").unwrap_or_else(|| "input".to_owned()),
    };
    let replaces = matches!(form.text("overwrite").as_deref(), Some("true" | "1"));
    let place = call.engine.studio.keep_upload(place, part.content.clone(), replaces);
    let body = json!({"name": place.filename, "subfolder": place.subfolder, "type": place.kind});
    Ok(answer::json(&call.turn, &body))
}

async fn object_info(call: Call) -> Response {
    answer::json(&call.turn, &nodes::all())
}

async fn object_info_of(Path(class): Path<String>, call: Call) -> Response {
    answer::json(&call.turn, &nodes::one(&class))
}

async fn system_stats(State(engine): State<Arc<Engine>>, call: Call) -> Response {
    let system = json!({"os": "posix", "comfyui_version": "0.0.0", "argv": []});
    let device = json!({"name": engine.own_name(), "type": "cpu", "index": null,
                        "vram_total": 0, "vram_free": 0,
                        "torch_vram_total": 0, "torch_vram_free": 0});
    answer::json(&call.turn, &json!({"system": system, "devices": [device]}))
}
