//! The LoRA adapters of one model, as its engine gets them.

use std::path::Path;
use std::sync::Arc;

use flexinfer_core::backends::{Backend, Call};
use flexinfer_crds::LoRAAdapter;
use flexinfer_crds::lora_adapter::{AdapterSource, AdapterSourceType};

/// The calls that load `adapters`, whose paths count from `folder`; none where the engine takes none,
/// which the fleet has told.
pub(crate) fn calls(backend: Backend, adapters: &[Arc<LoRAAdapter>], folder: &Path) -> Vec<Call> {
    let call = |adapter: &Arc<LoRAAdapter>| {
        let place = place(&adapter.spec.source, folder);
        backend.load_adapter(&adapter.spec.adapter_name, &place)
    };
    adapters.iter().filter_map(call).collect()
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
