//! ComfyUI's API as far as a client needs it without its socket: a prompt is queued, its history tells
//! when it is done, and `/view` hands out the picture. Every path is also served below `/api`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use axum::routing::{get, post};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer;
use super::call::Call;
use super::form::Form;
use super::refusal::Refusal;
use crate::engine::Engine;
use crate::picture;
use crate::random::stable_hash;

const SIDE: u32 = 256;
/// Prompts and uploads that are remembered; the oldest go first.
const MOST_KEPT: usize = 100;

/// What was painted and uploaded.
#[derive(Debug, Default)]
pub(crate) struct Studio {
    pictures: Mutex<BTreeMap<String, Vec<u8>>>,
    history: Mutex<BTreeMap<String, Value>>,
}

#[derive(Debug, Deserialize)]
struct PromptRequest {
    prompt: Value,
    client_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Viewed {
    filename: String,
}

/// The paths of this API.
pub(super) fn router() -> Router<Arc<Engine>> {
    let paths = Router::new()
        .route("/prompt", post(queue_prompt).get(state))
        .route("/queue", get(queue))
        .route("/history", get(history))
        .route("/history/{id}", get(history_of))
        .route("/view", get(view))
        .route("/upload/image", post(upload))
        .route("/system_stats", get(system_stats));
    Router::new().nest("/api", paths.clone()).merge(paths)
}

/// Paints at once what the graph says: its whole text is the prompt.
async fn queue_prompt(call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    let request: PromptRequest = call.json()?;
    if !request.prompt.is_object() {
        return Err(Refusal::bad_request("prompt: a graph of nodes is needed"));
    }
    let id = call.id("prompt-");
    let seed = stable_hash(request.prompt.to_string().as_bytes(), call.engine.settings.seed);
    let painted = picture::paint(&request.prompt.to_string(), seed, SIDE, SIDE)
        .map_err(|error| Refusal::bad_request(&error.to_string()))?;
    let file = format!("{id}.png");
    let image = json!({"filename": file, "subfolder": "", "type": "output"});
    let told = json!({
        "prompt": [0, id, request.prompt, {"client_id": request.client_id}, []],
        "outputs": {"9": {"images": [image]}},
        "status": {"status_str": "success", "completed": true, "messages": []},
    });
    let studio = &call.engine.studio;
    keep(&mut studio.pictures.lock(), file, painted);
    keep(&mut studio.history.lock(), id.clone(), told);
    let body = json!({"prompt_id": id, "number": 0, "node_errors": {}});
    Ok(answer::json(&call.turn, &body))
}

fn keep<T>(kept: &mut BTreeMap<String, T>, name: String, thing: T) {
    if kept.len() >= MOST_KEPT {
        kept.pop_first();
    }
    kept.insert(name, thing);
}

async fn state(call: Call) -> Response {
    answer::json(&call.turn, &json!({"exec_info": {"queue_remaining": 0}}))
}

async fn queue(call: Call) -> Response {
    answer::json(&call.turn, &json!({"queue_running": [], "queue_pending": []}))
}

async fn history(call: Call) -> Response {
    let history = call.engine.studio.history.lock().clone();
    answer::json(&call.turn, &json!(history))
}

/// Nothing where nothing is known, as ComfyUI has it.
async fn history_of(Path(id): Path<String>, call: Call) -> Response {
    let told = call.engine.studio.history.lock().get(&id).cloned();
    answer::json(&call.turn, &told.map_or_else(|| json!({}), |told| json!({ id: told })))
}

async fn view(
    State(engine): State<Arc<Engine>>,
    Query(viewed): Query<Viewed>,
    call: Call,
) -> Result<Response, Refusal> {
    let picture = engine.studio.pictures.lock().get(&viewed.filename).cloned();
    let picture =
        picture.ok_or_else(|| Refusal::NotFound(format!("no file {}", viewed.filename)))?;
    Ok(answer::bytes(&call.turn, "image/png", picture.into()))
}

async fn upload(call: Call) -> Result<Response, Refusal> {
    let form = Form::read(&call).await?;
    let part = form.needed("image")?;
    let name = part.file_name.clone().unwrap_or_else(|| "image.png".to_owned());
    keep(&mut call.engine.studio.pictures.lock(), name.clone(), part.content.to_vec());
    Ok(answer::json(&call.turn, &json!({"name": name, "subfolder": "", "type": "input"})))
}

async fn system_stats(call: Call) -> Response {
    let system = json!({"os": "posix", "comfyui_version": "0.0.0", "argv": []});
    answer::json(&call.turn, &json!({"system": system, "devices": []}))
}
