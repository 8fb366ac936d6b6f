//! `/debug/models`: what every model is at, for whoever wants to know why.

use std::collections::BTreeMap;

use flexinfer_core::ids::ModelId;
use flexinfer_core::queueing::MemberView;
use flexinfer_core::sharing::Capacity;
use serde_json::{Value, json};

use crate::queues::{Clock, GroupView, Queues};

/// The page: groups with their members, each with the last lines its engines said.
pub(super) fn page(queues: &Queues, lines: impl Fn(&ModelId) -> Vec<String>) -> Value {
    let groups: Vec<Value> =
        queues.view().iter().map(|view| group(view, queues.clock(), &lines)).collect();
    json!({ "groups": groups })
}

fn group(view: &GroupView, clock: Clock, lines: &impl Fn(&ModelId) -> Vec<String>) -> Value {
    let members: Vec<Value> =
        view.members.iter().map(|view| member(view, clock, &lines(&view.id))).collect();
    let capacity = match view.capacity {
        Capacity::One => json!("one"),
        Capacity::Vram(mib) => json!({ "vramMiB": mib }),
    };
    json!({ "group": view.id.to_string(), "capacity": capacity, "models": members })
}

fn member(view: &MemberView, clock: Clock, lines: &[String]) -> Value {
    let progress = view.progress.as_ref().map(|progress| {
        json!({
            "substage": progress.substage.to_string(),
            "done": progress.done.map(|(done, _)| done),
            "all": progress.done.map(|(_, all)| all),
            "message": progress.message,
        })
    });
    let failure = view
        .failure
        .as_ref()
        .map(|failure| json!({ "reason": failure.reason.to_string(), "message": failure.message }));
    let swap = view.last_swap.map(|swap| {
        let phases = swap.phases().map(|(phase, took)| (phase, took.as_secs_f64()));
        phases.into_iter().collect::<BTreeMap<_, _>>()
    });
    json!({
        "namespace": &*view.id.namespace,
        "model": &*view.id.name,
        "phase": view.phase.to_string(),
        "endpoint": view.address.map(|address| address.to_string()),
        "inFlight": view.in_flight,
        "waiting": view.waiting,
        "progress": progress,
        "failure": failure,
        "lastLoadSeconds": view.last_load.map(|took| took.as_secs_f64()),
        "lastSwapSeconds": swap,
        "quietSeconds": view.last_active.map(|last| clock.now().since(last).as_secs_f64()),
        "lastLines": lines,
    })
}
