//! The pressure on one member's key-value caches, the fullest of all its nodes, and the Model as its engine shall be started meanwhile.

use std::borrow::Cow;

use flexinfer_crds::Model;

use super::{Engine, Observed, Seen};
use crate::backends::{Backend, Config};
use crate::planning::model::serving_nodes;
use crate::planning::pressure::{self, Pressure, pressure};

pub(super) fn pressed(observed: &Observed<'_>, member: &Seen<'_>, backend: Backend) -> Pressure {
    let spec = &member.model.spec;
    let Some(wishes) = &spec.kv_cache else { return Pressure::default() };
    let engine = Engine::of(member.deployment, member.pods.iter().copied());
    let mut nodes = serving_nodes(member.pods.iter().copied());
    nodes.extend(engine.node.as_deref());
    let fullest = nodes.iter().filter_map(|node| observed.kv_cache_usage.get(*node).copied());
    let status = member.model.status.as_ref();
    pressure(pressure::Seen {
        wishes: Some(wishes),
        usage: fullest.max_by(f64::total_cmp),
        serving: engine.ready > 0 && engine.asked > 0,
        up: engine.asked > 0,
        sequences: backend.sequences(Config::of(Some(&spec.config))),
        status: status.and_then(|status| status.kv_cache.as_ref()),
        now: observed.now,
    })
}

/// The Model with the sequences that its engine shall have.
pub(super) fn as_reconfigured<'m>(model: &'m Model, pressure: &Pressure) -> Cow<'m, Model> {
    let Some(sequences) = pressure.sequences else { return Cow::Borrowed(model) };
    let mut model = model.clone();
    model.spec.config.insert(Backend::SEQUENCES.to_owned(), sequences.into());
    Cow::Owned(model)
}
