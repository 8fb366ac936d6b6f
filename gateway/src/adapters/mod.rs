//! The LoRA adapters of models, as their engines get them: with their start, or at the first request.

mod on_demand;
#[cfg(test)]
mod tests;
mod turns;

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

pub(crate) use on_demand::LoadId;
pub use on_demand::OnDemand;

use crate::ask::{self, AskError};
use crate::way::Way;

/// How long an engine may take for one adapter: it may have to download it.
const PATIENCE: Duration = Duration::from_mins(5);

/// As much as is read of what an engine says to it.
const LONGEST_ANSWER: usize = 64 * 1024;

/// Why an engine has not done with an adapter what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// It was not there to be asked, or left before it answered.
    #[error("{0}")]
    Away(String),
    /// It said that it will not, or did not come to an end.
    #[error("{0}")]
    Refused(String),
}

impl From<AskError> for Fault {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Unreachable { .. } | AskError::Insecure(_) | AskError::BrokenOff(_) => {
                Self::Away(error.to_string())
            }
            AskError::NoHttp(_) | AskError::Request(_) => Self::Refused(error.to_string()),
        }
    }
}

/// The call that loads `adapter`, whose path counts from `folder`, where engines have it from their start; none
/// where the engine takes none, which the fleet has told.
pub(crate) fn call(backend: Backend, adapter: &LoRAAdapter, folder: &Path) -> Option<Call> {
    if Adapter::on_demand(adapter).is_some() {
        return None;
    }
    backend.load_adapter(&adapter.spec.adapter_name, &place(&adapter.spec.source, folder))
}

/// The same for all of `adapters`.
pub(crate) fn calls(backend: Backend, adapters: &[Arc<LoRAAdapter>], folder: &Path) -> Vec<Call> {
    adapters.iter().filter_map(|adapter| call(backend, adapter, folder)).collect()
}

/// Makes a call that loads an adapter or takes one out. What is so already is as good as made.
async fn made(backend: Backend, way: &Way<'_>, call: &Call) -> Result<(), Fault> {
    let made = timeout(PATIENCE, asked(backend, way, call)).await;
    made.unwrap_or_else(|_| {
        Err(Fault::Refused(format!("{} did not answer for {PATIENCE:?}", backend.name())))
    })
}

async fn asked(backend: Backend, way: &Way<'_>, call: &Call) -> Result<(), Fault> {
    let answer = ask::call(way, call).await?;
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
    Err(Fault::Refused(format!("{} answered with {status}: {said}", backend.name())))
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
