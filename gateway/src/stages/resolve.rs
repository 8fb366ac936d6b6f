//! Finds the model that goes by the name, and whether its engine can do what is asked; for a caller with
//! a key, among the models that it may use.

use std::sync::Arc;

use flexinfer_core::callers::{Allowed, Caller};
use flexinfer_core::fleet::{Fleet, Served};
use flexinfer_core::openai::paths::Operation;
use flexinfer_core::openai::{model_object, models_list};
use flexinfer_core::rejection::Rejection;

use super::respond::Own;
use crate::parts::Parts;

/// The model that `name` means in `fleet` for `caller`.
pub(crate) fn resolve(
    fleet: &Fleet,
    caller: Option<&Caller>,
    name: &str,
    operation: Option<&Operation>,
) -> Result<Arc<Served>, Rejection> {
    let allowed = allowed(caller);
    let model = allowed.resolve(fleet, name)?;
    if let Some(operation) = operation {
        fleet
            .must_serve(model, operation.api, operation.path)
            .map_err(|rejection| allowed.discreet(rejection))?;
    }
    Ok(Arc::clone(model))
}

/// The models that `caller` may use.
pub(crate) fn list(parts: &Parts, fleet: &Fleet, caller: Option<&Caller>) -> Own {
    let allowed = allowed(caller);
    let liveness = |model: &Served| (parts.liveness)(model);
    Own::json(models_list(fleet, |model| allowed.includes(model), liveness))
}

/// One of them.
pub(crate) fn object(
    parts: &Parts,
    fleet: &Fleet,
    caller: Option<&Caller>,
    name: &str,
) -> Result<Own, Rejection> {
    let model = allowed(caller).resolve(fleet, name)?;
    Ok(Own::json(model_object(model, (parts.liveness)(model))))
}

fn allowed(caller: Option<&Caller>) -> &Allowed {
    caller.map_or(&Allowed::All, |caller| &caller.models)
}
