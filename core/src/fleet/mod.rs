//! Every model there is, as one immutable snapshot. A new one is built whenever a Model changes; a
//! request keeps the one it began with. It says who goes by which name, never who is awake.

mod conflict;
mod names;
mod served;
mod serving;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub use conflict::{Cause, Conflict};
pub use served::Served;

use crate::ids::ModelId;
use crate::rejection::Rejection;
use names::{Names, Owner};

/// The models of one gateway, by identity and by the names that requests use.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    /// Sorted by the name they are listed by; parked models too.
    models: Vec<Arc<Served>>,
    by_id: HashMap<ModelId, Arc<Served>>,
    names: Names,
}

impl Fleet {
    /// The fleet of `models`, and what stands between some of them and their names. The order of
    /// `models` means nothing, except that a second model of the same identity is left out.
    pub fn build(mut models: Vec<Served>) -> (Self, Vec<Conflict>) {
        let mut seen = HashSet::with_capacity(models.len());
        models.retain(|model| seen.insert(model.effective.id.clone()));
        names::list_by_shortest_name(&mut models);
        let place = |model: &Served| (Arc::clone(&model.listed_as), model.effective.id.clone());
        models.sort_by_cached_key(place);

        let models: Vec<Arc<Served>> = models.into_iter().map(Arc::new).collect();
        let with_id = |model: &Arc<Served>| (model.effective.id.clone(), Arc::clone(model));
        let by_id = models.iter().map(with_id).collect();
        let (names, conflicts) = Names::of(&models);
        (Self { models, by_id, names }, conflicts)
    }

    /// The model that goes by `name`, in this order:
    ///
    /// 1. A Model's own name: `name` where no other namespace offers it too, or `namespace/name`.
    /// 2. An alias (`litellm.servedModelName`, `litellm.aliases`) that only one Model claims.
    /// 3. The same whatever the case of the letters, if that means one model only.
    ///
    /// A parked model answers to nobody; a sleeping one answers like any other.
    pub fn resolve(&self, name: &str) -> Result<&Arc<Served>, Rejection> {
        match self.names.find(name) {
            Some(Owner::One(model)) => Ok(model),
            Some(Owner::Parked) => Err(Rejection::ModelParked { name: name.to_owned() }),
            Some(Owner::Several(models)) => Err(Rejection::ModelAmbiguous {
                name: name.to_owned(),
                candidates: models.iter().map(|model| model.name().to_owned()).collect(),
            }),
            None => Err(Rejection::ModelNotFound {
                name: name.to_owned(),
                nearest: self.names.nearest(name),
            }),
        }
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

    /// Every model, parked or not, in the same order.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Served>> {
        self.models.iter()
    }
}
