//! A LoRA adapter of the fleet.

use std::sync::Arc;

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
}
