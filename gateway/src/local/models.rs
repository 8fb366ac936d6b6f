//! From what the folder says to the fleet that is served. A Model whose new version means nothing
//! keeps its old one, and is complained about.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use flexinfer_core::activation::same_engine;
use flexinfer_core::effective::{Defaults, Effective};
use flexinfer_core::fleet::{Conflict, Fleet, Served};
use flexinfer_core::ids::ModelId;
use flexinfer_crds::{LoRAAdapter, Model};

use super::adapters::{Adapters, ByModel};
use super::{Contents, Listed};

/// The Models that were understood, with what has to be remembered of them.
#[derive(Default)]
pub(super) struct Models {
    defaults: Defaults,
    known: HashMap<ModelId, Known>,
    adapters: Adapters,
}

struct Known {
    model: Arc<Model>,
    /// What its engine is started with.
    adapters: Vec<Arc<LoRAAdapter>>,
    effective: Effective,
    /// Counts the edits that an engine has to be started afresh for.
    engine: u64,
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
            let id = listed.id.clone();
            let adapters = by_model.get(&id).cloned().unwrap_or_default();
            self.learn(listed, adapters, &mut complaints);
            let Some(known) = self.known.get(&id) else { continue };
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

    fn learn(
        &mut self,
        listed: Listed,
        adapters: Vec<Arc<LoRAAdapter>>,
        complaints: &mut Vec<String>,
    ) {
        let Listed { id, model, file, line, .. } = listed;
        let known = self.known.get(&id);
        if known.is_some_and(|known| known.model == model && known.adapters == adapters) {
            return;
        }
        let place = format!("{}:{line}", file.display());
        let engine = known.map_or(1, |known| {
            let same = same_engine(&known.model.spec, &model.spec) && known.adapters == adapters;
            known.engine + u64::from(!same)
        });
        let created = known.map_or_else(now, |known| known.created);
        match Effective::of(&model, engine, &self.defaults) {
            Ok(effective) => {
                self.known.insert(id, Known { model, adapters, effective, engine, created });
            }
            Err(found) => {
                complaints.extend(found.iter().map(|complaint| format!("{place}: {complaint}")));
                if known.is_some() {
                    complaints.push(format!("{place}: until this is mended, {id} stays as it was"));
                }
            }
        }
    }
}

/// The time, in seconds of Unix time.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
