//! Finds the model that goes by the name, and whether its engine can do what is asked.

use std::sync::Arc;

use flexinfer_core::fleet::{Fleet, Served};
use flexinfer_core::openai::paths::Operation;
use flexinfer_core::rejection::Rejection;

/// The model that `name` means in `fleet`.
pub(crate) fn resolve(
    fleet: &Fleet,
    name: &str,
    operation: Option<&Operation>,
) -> Result<Arc<Served>, Rejection> {
    let model = fleet.resolve(name)?;
    if let Some(operation) = operation {
        fleet.must_serve(model, operation.api, operation.path)?;
    }
    Ok(Arc::clone(model))
}
