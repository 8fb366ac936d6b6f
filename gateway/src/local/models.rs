//! From what the folder says to the fleet that is served.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use flexinfer_core::activation::same_engine;
use flexinfer_core::effective::Effective;
use flexinfer_core::fleet::{Conflict, Fleet, Served};
use flexinfer_core::ids::ModelId;
use flexinfer_crds::{LoRAAdapter, Model};

use super::adapters::{Adapters, ByModel};
use super::{Contents, Listed};

/// The Models that were understood, with what has to be remembered of them.
#[derive(Default)]
pub(super) struct Models {
    known: HashMap<ModelId, Known>,
    adapters: Adapters,
}

struct Known {
    model: Arc<Model>,
    /// What its engine is started with.
    adapters: Vec<Arc<LoRAAdapter>>,
    /// Its generation counts the edits that an engine has to be started afresh for.
    effective: Effective,
    created: u64,
}

/// What is served from now on.
pub(super) struct Taken {
    pub(super) fleet: Fleet,
    pub(super) models: HashMap<ModelId, Arc<Model>>,
    pub(super) adapters: ByModel,
    /// For people: `file:line: message`.
    pub(super) complaints: Vec<String>,
}

impl Models {
    /// Takes in what the folder says now.
    pub(super) fn take(&mut self, contents: Contents) -> Taken {
        let mut complaints = contents.complaints;
        let (adapters, by_model) = self.adapters.take(contents.adapters, &mut complaints);
        let mut served = Vec::new();
        let mut models = HashMap::new();
        for listed in contents.models {
            let id = listed.id().clone();
            let adapters = by_model.get(&id).cloned().unwrap_or_default();
            let known = self.learn(listed, adapters);
            let spec = &known.model.spec;
            let source = spec.source.as_deref().unwrap_or_default();
            let effective = known.effective.clone();
            served.push(Served::new(effective, &spec.backend, source, known.created));
            models.insert(id, Arc::clone(&known.model));
        }
        let (fleet, conflicts) = Fleet::with_adapters(served, adapters);
        complaints.extend(conflicts.iter().map(Conflict::to_string));
        Taken { fleet, models, adapters: by_model, complaints }
    }

    /// The Model as it is served.
    pub(super) fn get(&self, id: &ModelId) -> Option<&Arc<Model>> {
        self.known.get(id).map(|known| &known.model)
    }

    fn learn(&mut self, listed: Listed, adapters: Vec<Arc<LoRAAdapter>>) -> &Known {
        let id = listed.id().clone();
        let Listed { model, mut effective, .. } = listed;
        let known = self.known.get(&id);
        effective.generation = known.map_or(1, |known| {
            let same = same_engine(&known.model.spec, &model.spec) && known.adapters == adapters;
            known.effective.generation + u64::from(!same)
        });
        let created = known.map_or_else(now, |known| known.created);
        self.known.entry(id).insert_entry(Known { model, adapters, effective, created }).into_mut()
    }
}

/// The time, in seconds of Unix time.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
