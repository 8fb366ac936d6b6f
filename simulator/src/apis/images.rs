//! `POST /v1/images/generations` and `/v1/images/edits`: real pictures, made in as many steps as asked.

use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{self, set};
use super::call::{Call, now};
use super::form::Form;
use super::refusal::Refusal;
use crate::picture::{self, PictureError};
use crate::words;

const DEFAULT_STEPS: u32 = 20;
const DEFAULT_SIZE: &str = "512x512";

#[derive(Debug, Deserialize)]
struct ImageRequest {
    model: Option<String>,
    prompt: String,
    n: Option<usize>,
    size: Option<String>,
    response_format: Option<String>,
    seed: Option<u64>,
    num_inference_steps: Option<u32>,
}

/// What both ways of asking have in common.
struct Order {
    prompt: String,
    count: usize,
    seed: u64,
    steps: u32,
    by_url: bool,
}

/// Paints a prompt.
pub(crate) async fn generate(call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    let request: ImageRequest = call.json()?;
    call.model(request.model.as_deref())?;
    let (width, height) = size(request.size.as_deref())?;
    let order = Order {
        prompt: request.prompt,
        count: request.n.unwrap_or(1),
        seed: request.seed.unwrap_or(0),
        steps: request.num_inference_steps.unwrap_or(DEFAULT_STEPS),
        by_url: by_url(request.response_format.as_deref())?,
    };
    order.fill(&call, move |prompt, seed| picture::paint(prompt, seed, width, height)).await
}

/// Paints a prompt over a picture.
pub(crate) async fn edit(call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    let form = Form::read(&call).await?;
    call.model(form.text("model").as_deref())?;
    let original = form.needed("image")?.content.clone();
    let prompt = String::from_utf8_lossy(&form.needed("prompt")?.content).into_owned();
    let order = Order {
        prompt,
        count: form.parsed("n")?.unwrap_or(1),
        seed: form.parsed("seed")?.unwrap_or(0),
        steps: form.parsed("num_inference_steps")?.unwrap_or(DEFAULT_STEPS),
        by_url: by_url(form.text("response_format").as_deref())?,
    };
    order.fill(&call, move |prompt, seed| picture::paint_over(&original, prompt, seed)).await
}

impl Order {
    async fn fill(
        self,
        call: &Call,
        paint: impl Fn(&str, u64) -> Result<Vec<u8>, PictureError> + Send + 'static,
    ) -> Result<Response, Refusal> {
        if !(1..=10).contains(&self.count) {
            return Err(Refusal::bad_request("n must be from 1 to 10"));
        }
        let slot = call.engine.slots.take().await;
        let pictures = u32::try_from(self.count).unwrap_or(1);
        let step = call.engine.settings.timings.image_step;
        tokio::time::sleep(step.saturating_mul(self.steps.saturating_mul(pictures))).await;
        let seed = self.seed.wrapping_add(call.engine.settings.seed);
        let (prompt, count) = (self.prompt.clone(), self.count as u64);
        let painting = tokio::task::spawn_blocking(move || {
            (0..count)
                .map(|at| paint(&prompt, seed.wrapping_add(at)))
                .collect::<Result<Vec<_>, _>>()
        });
        let painted = match painting.await {
            Ok(painted) => painted.map_err(|error| Refusal::bad_request(&error.to_string()))?,
            Err(_) => return Err(Refusal::Unavailable),
        };
        drop(slot);
        let list: Vec<Value> = painted.iter().map(|file| self.show(file)).collect();
        let tokens = words::tokens(&self.prompt).len();
        let made = 256 * self.count;
        let usage = json!({"input_tokens": tokens, "output_tokens": made,
                           "total_tokens": tokens + made,
                           "input_tokens_details": {"text_tokens": tokens, "image_tokens": 0}});
        let body = json!({"created": now(), "data": list, "output_format": "png", "usage": usage});
        Ok(answer::json(&call.turn, &body))
    }

    /// A URL holds the picture itself, so that it works whatever stands between client and engine.
    fn show(&self, file: &[u8]) -> Value {
        let text = STANDARD.encode(file);
        let field = if self.by_url {
            json!({"url": format!("data:image/png;base64,{text}")})
        } else {
            json!({ "b64_json": text })
        };
        let mut shown = field;
        set(&mut shown, "revised_prompt", json!(self.prompt));
        shown
    }
}

fn by_url(format: Option<&str>) -> Result<bool, Refusal> {
    match format {
        None | Some("b64_json") => Ok(false),
        Some("url") => Ok(true),
        Some(_) => Err(Refusal::bad_request("response_format must be b64_json or url")),
    }
}

fn size(text: Option<&str>) -> Result<(u32, u32), Refusal> {
    let text = text.filter(|text| *text != "auto").unwrap_or(DEFAULT_SIZE);
    let sides = text.split_once('x');
    let parsed =
        sides.and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
    let fits = |side: u32| (1..=picture::LONGEST_SIDE).contains(&side);
    parsed.filter(|(width, height)| fits(*width) && fits(*height)).ok_or_else(|| {
        let longest = picture::LONGEST_SIDE;
        Refusal::bad_request(&format!(
            "size: {text:?} is not understood; write 512x512, at most {longest}x{longest}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_two_numbers_within_the_limit() {
        assert_eq!(size(None), Ok((512, 512)));
        assert_eq!(size(Some("auto")), Ok((512, 512)));
        assert_eq!(size(Some("64x32")), Ok((64, 32)));
        for wrong in ["64", "0x5", "axb", "9999x10", "-1x4"] {
            assert!(size(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
