//! Finds what goes by a name, and whether its engines can do what is asked; for a caller with a key,
//! among the models that it may use. Of several models, as a service label has them, one is chosen here.

use std::sync::Arc;

use flexinfer_core::callers::{Allowed, Caller};
use flexinfer_core::fleet::{Fleet, Named, Served};
use flexinfer_core::rejection::Rejection;

use super::receive::Call;
use crate::parts::Parts;

/// Which model a request is for.
pub(crate) struct Resolved {
    /// The model.
    pub(crate) served: Arc<Served>,
    /// The name of the adapter that is asked for, as its engine knows it.
    pub(crate) adapter: Option<Arc<str>>,
}

/// The model that `name` means in `fleet` for `caller`.
pub(crate) fn resolve(
    parts: &Parts,
    fleet: &Fleet,
    caller: Option<&Caller>,
    call: &Call,
    name: &str,
) -> Result<Resolved, Rejection> {
    let allowed = allowed(caller);
    let named = allowed.lookup(fleet, name)?;
    let api = call.operation.map(|operation| operation.api);
    let path = call.path.split('?').next().unwrap_or_default();
    let named =
        fleet.serving(&named, api, path).map_err(|rejection| allowed.discreet(rejection))?;
    let adapter = named.adapter().map(|adapter| Arc::clone(&adapter.name));
    let served = choose(parts, &named).ok_or(Rejection::Internal)?;
    Ok(Resolved { served, adapter })
}

/// One of the candidates, of which there is at least one.
fn choose(parts: &Parts, named: &Named) -> Option<Arc<Served>> {
    match named.label() {
        Some(label) => parts.labels.choose(label, named.candidates(), &parts.liveness),
        None => named.single().cloned(),
    }
}

/// The models that `caller` may use.
pub(crate) fn allowed(caller: Option<&Caller>) -> &Allowed {
    caller.map_or(&Allowed::All, |caller| &caller.models)
}
