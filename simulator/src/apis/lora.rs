//! Adapters: `POST /v1/load_lora_adapter` and `/v1/unload_lora_adapter`, in vLLM's words.

use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;

use super::call::Call;
use super::refusal::Refusal;

#[derive(Debug, Deserialize)]
struct LoadRequest {
    lora_name: Option<String>,
    lora_path: Option<String>,
    load_inplace: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct UnloadRequest {
    lora_name: Option<String>,
}

/// Loads an adapter; from then on the engine answers to its name.
pub(crate) async fn load(call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    let request: LoadRequest = call.json()?;
    let (Some(name), Some(path)) = (named(request.lora_name), named(request.lora_path)) else {
        return Err(Refusal::InvalidUserInput(
            "Both 'lora_name' and 'lora_path' must be provided.".to_owned(),
        ));
    };
    let mut adapters = call.engine.adapters.lock();
    if adapters.contains_key(&name) && request.load_inplace != Some(true) {
        return Err(Refusal::InvalidUserInput(format!(
            "The lora adapter '{name}' has already been loaded. If you want to load the adapter in \
             place, set 'load_inplace' to True."
        )));
    }
    adapters.insert(name.clone(), path);
    Ok(format!("Success: LoRA adapter '{name}' added successfully.").into_response())
}

/// Unloads an adapter.
pub(crate) async fn unload(call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    let request: UnloadRequest = call.json()?;
    let Some(name) = named(request.lora_name) else {
        return Err(Refusal::InvalidUserInput(
            "'lora_name' needs to be provided to unload a LoRA adapter.".to_owned(),
        ));
    };
    if call.engine.adapters.lock().remove(&name).is_none() {
        return Err(Refusal::NotFound(format!("The lora adapter '{name}' cannot be found.")));
    }
    Ok(format!("Success: LoRA adapter '{name}' removed successfully.").into_response())
}

fn named(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}
