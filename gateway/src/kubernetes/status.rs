//! `/debug/models` on a cluster: every model with its endpoints, and objects that mean nothing.

use flexinfer_core::queueing::{EndpointView, PoolView};
use serde_json::{Value, json};

use super::pools::Pools;
use crate::queues::Clock;

/// The page.
pub(super) fn page(pools: &Pools, complaints: &[(String, String)]) -> Value {
    let models: Vec<Value> = pools.views().iter().map(|view| model(view, pools.clock())).collect();
    let faulty: Vec<Value> =
        complaints.iter().map(|(model, fault)| json!({ "model": model, "fault": fault })).collect();
    json!({ "models": models, "faulty": faulty })
}

fn model(view: &PoolView, clock: Clock) -> Value {
    let failure = view
        .failure
        .as_ref()
        .map(|failure| json!({ "reason": failure.reason.to_string(), "message": failure.message }));
    let endpoints: Vec<Value> = view.endpoints.iter().map(endpoint).collect();
    json!({
        "namespace": &*view.id.namespace,
        "model": &*view.id.name,
        "phase": view.phase.map(|phase| phase.to_string()),
        "draining": view.draining,
        "failure": failure,
        "endpoints": endpoints,
        "inFlight": view.in_flight,
        "waiting": view.waiting,
        "waitsFor": view.waits_for.map(|(stage, since)| {
            json!({ "phase": stage.to_string(), "seconds": clock.now().since(since).as_secs_f64() })
        }),
        "lastLoadSeconds": view.last_load.map(|took| took.as_secs_f64()),
        "lastWaitSeconds": spent(view),
        "quietSeconds": view.last_active.map(|last| clock.now().since(last).as_secs_f64()),
    })
}

/// What the last wait for the model was spent on, by phase.
fn spent(view: &PoolView) -> Option<Value> {
    let phases = view.last_wait.iter();
    let phases = phases.map(|(stage, took)| (stage.to_string(), json!(took.as_secs_f64())));
    Some(Value::Object(phases.collect())).filter(|_| !view.last_wait.is_empty())
}

fn endpoint(view: &EndpointView) -> Value {
    json!({
        "id": view.id.to_string(),
        "address": view.address.to_string(),
        "state": view.state.to_string(),
        "inFlight": view.in_flight,
    })
}
