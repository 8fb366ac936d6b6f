//! A LoRA adapter of the fleet.

use std::sync::Arc;

use flexinfer_crds::LoRAAdapter;
use flexinfer_crds::lora_adapter::{AdapterSource, AdapterSourceType};

use crate::ids::ModelId;

/// A LoRA adapter as the request path knows it: a name of its own for a model with something added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adapter {
    /// Which `LoRAAdapter` this is.
    pub id: ModelId,
    /// The model it is added to (`spec.modelRef`), in the adapter's own namespace.
    pub base: ModelId,
    /// The name that requests use and its engine knows it by (`spec.adapterName`).
    pub name: Arc<str>,
    /// When it was created, in seconds of Unix time.
    pub created: u64,
    /// What its engine loads at the first request for it; `None` where an engine has it from its start.
    pub on_demand: Option<AdapterSource>,
}

impl Adapter {
    /// What an engine loads at the first request for `adapter` (`spec.preload: false`). Nothing of an OCI
    /// registry, which has to be fetched before any engine can read it.
    pub fn on_demand(adapter: &LoRAAdapter) -> Option<AdapterSource> {
        let source = &adapter.spec.source;
        let later = adapter.spec.preload == Some(false) && source.r#type != AdapterSourceType::Oci;
        later.then(|| source.clone())
    }
}
