//! The Stable Diffusion web UI's API: `/sdapi/v1/txt2img`, `/sdapi/v1/img2img`, and what clients ask first.

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer;
use super::call::Call;
use super::refusal::Refusal;
use crate::engine::Engine;
use crate::picture::{self, PictureError};

const DEFAULT_SIDE: u32 = 512;
const DEFAULT_STEPS: u32 = 20;
const MOST_PICTURES: u32 = 16;

#[derive(Debug, Deserialize)]
struct PictureRequest {
    #[serde(default)]
    prompt: String,
    width: Option<u32>,
    height: Option<u32>,
    steps: Option<u32>,
    seed: Option<i64>,
    batch_size: Option<u32>,
    #[serde(default)]
    init_images: Vec<String>,
}

/// The paths of this API.
pub(super) fn router() -> Router<Arc<Engine>> {
    Router::new()
        .route("/sdapi/v1/txt2img", post(paint))
        .route("/sdapi/v1/img2img", post(paint_over))
        .route("/sdapi/v1/sd-models", get(models))
        .route("/sdapi/v1/options", get(options).post(options))
}

async fn paint(call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    let request: PictureRequest = call.json()?;
    let side = |side: Option<u32>| side.unwrap_or(DEFAULT_SIDE);
    let (width, height) = (side(request.width), side(request.height));
    let prompt = request.prompt.clone();
    fill(&call, request, move |seed| picture::paint(&prompt, seed, width, height)).await
}

async fn paint_over(call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    let request: PictureRequest = call.json()?;
    let first = request.init_images.first().map(|text| text.rsplit(',').next().unwrap_or(text));
    let first = first.ok_or_else(|| Refusal::bad_request("init_images: Field required"))?;
    let original = STANDARD
        .decode(first)
        .map_err(|_| Refusal::bad_request("init_images: not a picture in base64"))?;
    let prompt = request.prompt.clone();
    fill(&call, request, move |seed| picture::paint_over(&original, &prompt, seed)).await
}

async fn fill(
    call: &Call,
    request: PictureRequest,
    paint: impl Fn(u64) -> Result<Vec<u8>, PictureError> + Send + 'static,
) -> Result<Response, Refusal> {
    let count = request.batch_size.unwrap_or(1).clamp(1, MOST_PICTURES);
    let steps = request.steps.unwrap_or(DEFAULT_STEPS);
    let slot = call.engine.slots.take().await;
    let step = call.engine.settings.timings.image_step;
    tokio::time::sleep(step.saturating_mul(steps.saturating_mul(count))).await;
    let seed = request.seed.unwrap_or(0).cast_unsigned().wrapping_add(call.engine.settings.seed);
    let painting = tokio::task::spawn_blocking(move || {
        (0..u64::from(count)).map(|at| paint(seed.wrapping_add(at))).collect::<Result<Vec<_>, _>>()
    });
    let painted = match painting.await {
        Ok(painted) => painted.map_err(|error| Refusal::bad_request(&error.to_string()))?,
        Err(_) => return Err(Refusal::Unavailable),
    };
    drop(slot);
    let images: Vec<String> = painted.iter().map(|file| STANDARD.encode(file)).collect();
    let told = json!({"prompt": request.prompt, "seed": seed, "steps": steps});
    let body = json!({"images": images, "parameters": told, "info": told.to_string()});
    Ok(answer::json(&call.turn, &body))
}

async fn models(call: Call) -> Response {
    let name = call.engine.own_name();
    answer::json(&call.turn, &json!([{"title": name, "model_name": name}]))
}

async fn options(call: Call) -> Response {
    let chosen: Value = json!({"sd_model_checkpoint": call.engine.own_name()});
    answer::json(&call.turn, &chosen)
}
