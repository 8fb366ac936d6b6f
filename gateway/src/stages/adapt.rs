//! Has the booked engine load the adapter that is asked for, where that happens at its first request. An engine that
//! is not there to be asked is left for another one; what an engine refuses to load is the client's to know.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use flexinfer_core::fleet::Adapter;
use flexinfer_core::ids::ModelId;
use flexinfer_core::queueing::Terms;
use flexinfer_core::rejection::Rejection;
use futures::poll;
use pingora_proxy::Session;
use tokio::time::timeout;

use super::{Stop, connect, dispatch};
use crate::adapters::Fault;
use crate::context::{Context, Retry};
use crate::parts::Parts;

/// Waits until the booked engine has the adapter: no longer than for a model that has to be woken, the wait for
/// the slot included.
pub(crate) async fn adapt(
    parts: &Parts,
    session: &mut Session,
    context: &mut Context,
) -> Result<(), Stop> {
    let adapter = context.target.as_ref().and_then(|target| target.adapter.as_ref());
    let Some(adapter) = adapter.filter(|adapter| adapter.on_demand.is_some()) else {
        return Ok(());
    };
    let adapter = Arc::clone(adapter);
    loop {
        match load(parts, session, context, &adapter).await? {
            Ok(()) => return Ok(()),
            Err(fault) => another(parts, session, context, &adapter, &fault).await?,
        }
    }
}

/// What came of having the booked engine load it.
async fn load(
    parts: &Parts,
    session: &mut Session,
    context: &mut Context,
    adapter: &Adapter,
) -> Result<Result<(), Arc<Fault>>, Stop> {
    let booking = context.attempt.booking.as_ref().ok_or(Rejection::Internal)?;
    let Some(load) = parts.adapters.load(booking, adapter) else { return Ok(Ok(())) };
    context.attempt.loaded = Some(load.id);
    let limit = parts.queue.cold_wait(&Terms::from(&booking.served.effective));
    let left = limit.saturating_sub(context.attempt.waited.unwrap_or_default());
    let mut loaded = Box::pin(timeout(left, load.outcome));
    // Mostly it is there already: then there is no wait to be measured, and no client to be watched.
    let loaded = match poll!(&mut loaded) {
        Poll::Ready(loaded) => loaded,
        Poll::Pending => dispatch::wait(session, context, loaded).await?,
    };
    loaded.map_err(|_| too_late(context, adapter).into())
}

/// The load goes on: whoever asks again joins it.
fn too_late(context: &Context, adapter: &Adapter) -> Rejection {
    let waited: Duration = context.attempt.waited.unwrap_or_default();
    let model = ModelId::new(&adapter.base.namespace, &adapter.name);
    Rejection::ActivationTimeout { model, waited, retry_in: None }
}

/// Books another slot where the engine was not there to be asked, as often as connections may be tried.
async fn another(
    parts: &Parts,
    session: &mut Session,
    context: &mut Context,
    adapter: &Adapter,
    fault: &Fault,
) -> Result<(), Stop> {
    let model = adapter.base.clone();
    match fault {
        Fault::Refused(problem) => {
            let (adapter, problem) = (adapter.name.to_string(), problem.clone());
            Err(Rejection::AdapterNotLoaded { model, adapter, problem }.into())
        }
        Fault::Away(_) => {
            context.attempt.connections += 1;
            if !context.attempt.may_move(parts.limits.connections) {
                return Err(Rejection::UpstreamUnreachable { model }.into());
            }
            if let Some(target) = &context.target {
                target.series.retried("connect");
            }
            let another = connect::another_slot(parts, context, Retry::Elsewhere);
            let another = another.ok_or(Rejection::Internal)?;
            dispatch::dispatch(session, context, another).await
        }
    }
}
