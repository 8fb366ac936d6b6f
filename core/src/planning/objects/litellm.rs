//! What a LiteLLM in front of the gateway is told about a model, as annotations.

use std::collections::BTreeSet;

use flexinfer_crds::model::ModelSpec;
use flexinfer_crds::{Model, keys};
use serde_json::json;

use super::Blueprint;
use super::metadata::Texts;
use crate::backends::{Backend, Config};
use crate::effective::Effective;

impl Blueprint<'_> {
    /// What the Deployment is annotated with.
    pub(super) fn offered(&self) -> Texts {
        let mut texts = offered(self.model, self.effective);
        if !self.effective.parked {
            let can = capabilities(&self.model.spec, self.backend);
            texts.insert(keys::LITELLM_CAPABILITIES.to_owned(), can);
        }
        texts
    }
}

/// Under which names and with which limits the model is offered; nothing for a parked model.
pub(super) fn offered(model: &Model, effective: &Effective) -> Texts {
    let mut texts = Texts::new();
    if effective.parked {
        return texts;
    }
    let litellm = model.spec.litellm.clone().unwrap_or_default();
    let own = litellm.served_model_name.as_deref().map(str::trim).filter(|name| !name.is_empty());
    let served = own.unwrap_or(&effective.id.name);
    let aliases: BTreeSet<_> = effective.service_labels.iter().chain(&effective.aliases).collect();
    let aliases: Vec<_> =
        aliases.into_iter().map(String::as_str).filter(|alias| *alias != served).collect();
    let mut tell = |key: &str, text: String| {
        if !text.is_empty() {
            texts.insert(key.to_owned(), text);
        }
    };
    tell(keys::LITELLM_SERVED_MODEL, served.to_owned());
    tell(keys::LITELLM_ALIASES, aliases.join(","));
    tell(keys::LITELLM_COPILOT_MODEL, litellm.copilot_alias.unwrap_or_default().trim().to_owned());
    let config = Config::of(Some(&model.spec.config));
    let window = effective.context_window;
    let limit = |name: &str| {
        let limit = config.count(name).ok().flatten().filter(|tokens| *tokens > 0)?;
        Some(window.map_or(limit, |window| limit.min(window)))
    };
    let number = |tokens: Option<u32>| tokens.map(|tokens| tokens.to_string()).unwrap_or_default();
    tell(keys::LITELLM_CONTEXT_WINDOW, number(window));
    tell(keys::LITELLM_MAX_INPUT_TOKENS, number(limit("maxInputTokens")));
    tell(keys::LITELLM_MAX_OUTPUT_TOKENS, number(limit("maxOutputTokens")));
    texts
}

/// What the model can do, as JSON: the Model's word, else what backend and options tell.
fn capabilities(spec: &ModelSpec, backend: Backend) -> String {
    let own = spec.capabilities.clone().unwrap_or_default();
    let config = Config::of(Some(&spec.config));
    let on = |name: &str| config.flag(name).ok().flatten() == Some(true);
    let llamacpp = backend == Backend::LlamaCpp;
    let calls_tools =
        matches!(backend, Backend::Vllm | Backend::Ollama) || (llamacpp && on("jinja"));
    let sees = llamacpp && config.has("mmproj");
    let paints = matches!(backend, Backend::Diffusers | Backend::ComfyUi | Backend::VllmOmni);
    json!({
        "toolCalling": own.tool_calling.unwrap_or(calls_tools),
        "vision": own.vision.unwrap_or(sees),
        "imageGeneration": own.image_generation.unwrap_or(paints),
    })
    .to_string()
}
