//! Finds what goes by a name, and whether its engines can do what is asked; for a caller with a key,
//! among the models that it may use. Of several models, as a service label has them, one is chosen here.

use std::sync::Arc;

use flexinfer_core::backends::Backend;
use flexinfer_core::callers::{Allowed, Caller};
use flexinfer_core::fleet::{Fleet, Named, Served};
use flexinfer_core::rejection::Rejection;
use flexinfer_core::routing::{Said, stored_response};
use pingora_proxy::Session;

use super::receive::Call;
use super::understand;
use crate::context::{Body, Context};
use crate::metrics::Outcome;
use crate::parts::Parts;

/// What `name` means in `fleet` for `caller`: at least one model that may answer.
pub(crate) fn resolve(
    fleet: &Fleet,
    caller: Option<&Caller>,
    call: &Call,
    name: &str,
) -> Result<Named, Rejection> {
    let allowed = allowed(caller);
    let named = allowed.lookup(fleet, name)?;
    let api = call.operation.map(|operation| operation.api);
    let path = call.path.split('?').next().unwrap_or_default();
    fleet.serving(&named, api, path).map_err(|rejection| allowed.discreet(rejection))
}

/// The model that made the stored response that `call` is about; `None` where it is about none. One that this
/// gateway did not see made may be of the only model that is awake and stores responses.
pub(crate) fn maker(
    parts: &Parts,
    fleet: &Fleet,
    caller: Option<&Caller>,
    call: &Call,
) -> Result<Option<Named>, Rejection> {
    let operation = call.operation.filter(|operation| operation.recalls());
    let Some((operation, id)) = operation.zip(stored_response(&call.path)) else {
        return Ok(None);
    };
    let allowed = allowed(caller);
    let path = call.path.split('?').next().unwrap_or_default();
    let named = |model: &Arc<Served>| Named::Model(Arc::clone(model));
    let may = |model: &&Arc<Served>| {
        let stores = fleet.serving(&named(model), Some(operation.api), path);
        allowed.includes(model) && stores.is_ok()
    };
    let found = if let Some(known) = parts.remembered.maker(&id) {
        fleet.get(&known).filter(|model| !model.effective.parked).filter(may)
    } else {
        // What a sleeping engine had is gone with it: whatever id somebody made up wakes none.
        let mut all = fleet.listed().filter(may).filter(|model| (parts.liveness)(model).ready);
        all.next().filter(|_| all.next().is_none())
    };
    let unknown = || Rejection::ResponseUnknown { id: id.clone().into_owned() };
    found.map(named).map(Some).ok_or_else(unknown)
}

/// The model that answers, of those that `named` leads to.
pub(crate) async fn choose(
    parts: &Parts,
    session: &Session,
    call: &Call,
    body: Option<&Body>,
    named: &Named,
) -> Result<Arc<Served>, Rejection> {
    let chosen = match named.label() {
        None => named.single().cloned(),
        Some(label) => {
            let routing = parts.labels.routing();
            let of = move |said: &Said<'_>| routing.key(said);
            let key = understand::key(session, body, parts.routing.lengths, of).await?;
            let models = named.candidates();
            let chosen = parts.labels.choose(label, key.as_ref(), models, &parts.liveness);
            chosen.map(|(model, ready)| {
                parts.metrics.label_routed(label, routing, model.name(), ready);
                model
            })
        }
    };
    // What was resolved leads to at least one.
    let chosen = chosen.ok_or(Rejection::Internal)?;
    still_there(parts, call, &chosen)?;
    let websocket = call.operation.is_some_and(|operation| chosen.speaks_websocket_only(operation));
    if websocket && !session.downstream_session.is_upgrade_req() {
        return Err(Rejection::UpgradeMissing);
    }
    Ok(chosen)
}

/// Refuses what is about a stored response that no engine can have. Engines keep them in memory: with the engine of a model
/// that sleeps they went, and it is not woken to be asked. What others run may keep them elsewhere, and is asked always.
fn still_there(parts: &Parts, call: &Call, model: &Served) -> Result<(), Rejection> {
    let operation = call.operation.filter(|operation| operation.recalls());
    let Some(id) = operation.and_then(|_| stored_response(&call.path)) else { return Ok(()) };
    let ours = Backend::named(&model.backend).is_none_or(Backend::starts_engine);
    if !ours || parts.dispatch.is_up(&model.effective.id) {
        return Ok(());
    }
    Err(Rejection::ResponseLost { id: id.into_owned(), model: model.effective.id.clone() })
}

/// Counts a request that came to nothing because of what its model is.
pub(crate) fn count(parts: &Parts, context: &Context, rejection: &Rejection) {
    // Names that lead somewhere: there are no more of them than Models say.
    let (name, outcome) = match rejection {
        Rejection::ApiNotServed { name, .. } => (name, Outcome::EndpointUnsupported),
        Rejection::ModelParked { name } => (name, Outcome::Parked),
        _ => return,
    };
    parts.metrics.model(name).finished(outcome, context.started.elapsed(), None);
}

/// The models that `caller` may use.
pub(crate) fn allowed(caller: Option<&Caller>) -> &Allowed {
    caller.map_or(&Allowed::All, |caller| &caller.models)
}
