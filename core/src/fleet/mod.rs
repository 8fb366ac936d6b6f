//! Every model there is, as one immutable snapshot. A new one is built whenever a Model changes; a
//! request keeps the one it began with. It says who goes by which name, never who is awake.

mod adapter;
mod claims;
mod conflict;
mod named;
mod names;
mod served;
mod serving;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::FixedState;

pub use adapter::Adapter;
pub use conflict::{Cause, Conflict};
pub use named::Named;
pub use served::Served;

use crate::ids::ModelId;
use crate::rejection::Rejection;
use names::{Names, Owner};

/// The models of one gateway, by identity and by the names that requests use.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    /// Sorted by the name they are listed by; parked models too.
    models: Vec<Arc<Served>>,
    by_id: HashMap<ModelId, Arc<Served>, FixedState>,
    /// Sorted by identity.
    adapters: Vec<Arc<Adapter>>,
    names: Names,
}

impl Fleet {
    /// The fleet of `models`, and what stands between some of them and their names. The order of
    /// `models` means nothing, except that a second model of the same identity is left out.
    pub fn build(models: Vec<Served>) -> (Self, Vec<Conflict>) {
        Self::with_adapters(models, Vec::new())
    }

    /// The same with LoRA adapters; a second adapter of the same identity is left out too.
    pub fn with_adapters(
        mut models: Vec<Served>,
        mut adapters: Vec<Adapter>,
    ) -> (Self, Vec<Conflict>) {
        let mut seen = HashSet::with_capacity(models.len());
        models.retain(|model| seen.insert(model.effective.id.clone()));
        names::list_by_shortest_name(&mut models);
        let place = |model: &Served| (Arc::clone(&model.listed_as), model.effective.id.clone());
        models.sort_by_cached_key(place);
        adapters.sort_by(|a, b| a.id.cmp(&b.id));
        adapters.dedup_by(|later, earlier| later.id == earlier.id);

        let models: Vec<Arc<Served>> = models.into_iter().map(Arc::new).collect();
        let adapters: Vec<Arc<Adapter>> = adapters.into_iter().map(Arc::new).collect();
        let with_id = |model: &Arc<Served>| (model.effective.id.clone(), Arc::clone(model));
        let by_id = models.iter().map(with_id).collect();
        let (names, conflicts) = Names::of(&models, &adapters);
        (Self { models, by_id, adapters, names }, conflicts)
    }

    /// What goes by `name`, in this order:
    ///
    /// 1. A Model's own name: `name` where no other namespace offers it too, or `namespace/name`.
    /// 2. A service label, offered by any number of Models of one namespace.
    /// 3. An alias (`litellm.servedModelName`, `litellm.aliases`) that only one Model claims.
    /// 4. The name of a LoRA adapter.
    ///
    /// What is not found to the letter is looked for with the tag `:latest` added or taken away, then
    /// whatever the case of the letters, if that means one thing only. A parked model answers to
    /// nobody; a sleeping one answers like any other.
    pub fn lookup(&self, name: &str) -> Result<&Named, Rejection> {
        match self.names.find(name) {
            Some(Owner::One(named)) => Ok(named),
            Some(Owner::Parked(listed)) => Err(Rejection::ModelParked { name: listed.to_string() }),
            Some(Owner::Several(several)) => Err(Rejection::ModelAmbiguous {
                name: name.to_owned(),
                candidates: several.iter().map(Named::full_name).collect(),
            }),
            None => Err(Rejection::ModelNotFound {
                name: name.to_owned(),
                nearest: self.names.nearest(name),
            }),
        }
    }

    /// The one model that `name` leads to; a label that several offer is ambiguous here.
    pub fn resolve(&self, name: &str) -> Result<&Arc<Served>, Rejection> {
        self.lookup(name)?.alone(name)
    }

    /// Whether some model goes by `name`, be it parked or ambiguous. Paths with raw slashes in
    /// names are cut by this.
    pub fn knows(&self, name: &str) -> bool {
        self.names.find(name).is_some()
    }

    /// The model of this identity, parked or not.
    pub fn get(&self, id: &ModelId) -> Option<&Arc<Served>> {
        self.by_id.get(id)
    }

    /// The models that are offered, sorted by the name they are listed by.
    pub fn listed(&self) -> impl Iterator<Item = &Arc<Served>> {
        self.models.iter().filter(|model| !model.effective.parked)
    }

    /// The adapters that requests can be made for, sorted by identity.
    pub fn adapters(&self) -> impl Iterator<Item = (&Arc<Adapter>, &Arc<Served>)> {
        self.adapters.iter().filter_map(|adapter| match self.lookup(&adapter.name) {
            Ok(Named::Adapter { adapter: found, base }) if found.id == adapter.id => {
                Some((found, base))
            }
            _ => None,
        })
    }

    /// Every model, parked or not, in the same order.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Served>> {
        self.models.iter()
    }
}
