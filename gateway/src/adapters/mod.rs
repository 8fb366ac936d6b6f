//! The LoRA adapters of models, as their engines get them: with their start, or at the first request.

mod on_demand;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use flexinfer_core::backends::{Backend, Call};
use flexinfer_core::fleet::Adapter;
use flexinfer_crds::LoRAAdapter;
use flexinfer_crds::lora_adapter::{AdapterSource, AdapterSourceType};
use http_body_util::{BodyExt, Limited};
use serde_json::Value;
use tokio::time::timeout;

pub use on_demand::OnDemand;

use crate::ask;

/// How long an engine may take for one adapter: it may have to download it.
const PATIENCE: Duration = Duration::from_mins(5);

/// As much as is read of what an engine says to it.
const LONGEST_ANSWER: usize = 64 * 1024;

/// The calls that load those of `adapters` that an engine has from its start, whose paths count from `folder`;
/// none where the engine takes none, which the fleet has told.
pub(crate) fn calls(backend: Backend, adapters: &[Arc<LoRAAdapter>], folder: &Path) -> Vec<Call> {
    let from_start = adapters.iter().filter(|adapter| Adapter::on_demand(adapter).is_none());
    let call = |adapter: &Arc<LoRAAdapter>| {
        let place = place(&adapter.spec.source, folder);
        backend.load_adapter(&adapter.spec.adapter_name, &place)
    };
    from_start.filter_map(call).collect()
}

/// Makes a call that loads an adapter or takes one out. What is so already is as good as made.
pub(crate) async fn made(backend: Backend, address: SocketAddr, call: &Call) -> Result<(), String> {
    match timeout(PATIENCE, asked(backend, address, call)).await {
        Ok(made) => made,
        Err(_) => Err(format!("{} did not answer for {PATIENCE:?}", backend.name())),
    }
}

async fn asked(backend: Backend, address: SocketAddr, call: &Call) -> Result<(), String> {
    let answer = ask::call(address, call).await.map_err(|error| error.to_string())?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), LONGEST_ANSWER).collect().await;
    let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    if status.is_success() {
        return Ok(());
    }
    let said: Value = serde_json::from_slice(&body).unwrap_or_default();
    if backend.adapter_is_loaded_already(status.as_u16(), &said) {
        return Ok(());
    }
    let said: String = String::from_utf8_lossy(&body).chars().take(300).collect();
    Err(format!("{} answered with {status}: {said}", backend.name()))
}

/// The largest rank that any of them asks for.
pub(crate) fn rank(adapters: &[Arc<LoRAAdapter>]) -> Option<u32> {
    let rank = |adapter: &Arc<LoRAAdapter>| u32::try_from(adapter.spec.max_rank?).ok();
    adapters.iter().filter_map(rank).max()
}

fn place(source: &AdapterSource, folder: &Path) -> String {
    match source.r#type {
        AdapterSourceType::LocalPath => {
            let path = source.uri.strip_prefix("file://").unwrap_or(&source.uri);
            folder.join(path).to_string_lossy().into_owned()
        }
        AdapterSourceType::HuggingFace | AdapterSourceType::Oci => {
            source.uri.strip_prefix("HF://").unwrap_or(&source.uri).to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_count_from_the_models_folder_and_repositories_are_left_to_the_engine() {
        let placed = |r#type, uri: &str| {
            place(&AdapterSource { r#type, uri: uri.into() }, Path::new("/models"))
        };
        let (local, hub) = (AdapterSourceType::LocalPath, AdapterSourceType::HuggingFace);
        assert_eq!(placed(local, "adapters/sql"), "/models/adapters/sql");
        assert_eq!(placed(local, "file:///elsewhere/sql"), "/elsewhere/sql");
        assert_eq!(placed(hub, "HF://org/sql"), "org/sql");
        assert_eq!(placed(hub, "org/sql"), "org/sql");
    }
}
