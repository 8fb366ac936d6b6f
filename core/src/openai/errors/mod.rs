//! The body of a rejection, in the shape of each dialect. Status, code and message are the rejection's
//! own, whoever reads them.

mod anthropic;
mod comfyui;
mod ollama;
mod openai;
mod stable_diffusion;
#[cfg(test)]
mod tests;

use super::Dialect;
use crate::rejection::Rejection;

/// The content type of every rejection, in every dialect.
pub const CONTENT_TYPE: &str = "application/json";

/// What is said to a client of this dialect. `request_id` is repeated where the dialect has a place
/// for it.
pub fn error_body(dialect: Dialect, rejection: &Rejection, request_id: Option<&str>) -> Vec<u8> {
    let written = match dialect {
        Dialect::OpenAi => openai::body(rejection),
        Dialect::Anthropic => anthropic::body(rejection, request_id),
        Dialect::Ollama => ollama::body(rejection),
        Dialect::StableDiffusion => stable_diffusion::body(rejection),
        Dialect::ComfyUi => comfyui::body(rejection),
    };
    // Strings and string keys are all there is, and those can always be written.
    written.unwrap_or_default()
}
