//! The LoRAAdapters, as far as an engine has to be started with room for them; gateways load them.

use std::collections::{BTreeMap, BTreeSet};

use flexinfer_core::ids::ModelId;
use flexinfer_core::planning::objects;
use flexinfer_crds::LoRAAdapter;

/// The adapters by namespace and name.
#[derive(Default)]
pub(super) struct Adapters {
    known: BTreeMap<(String, String), Wanted>,
}

/// What one adapter asks of its model's engines.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    base: ModelId,
    rank: Option<u32>,
}

impl Adapters {
    /// The adapter at `place` is now this, or none. The models for whose engines that changes something.
    pub(super) fn put(
        &mut self,
        place: (String, String),
        adapter: Option<&LoRAAdapter>,
    ) -> Vec<ModelId> {
        let wanted = adapter.map(|adapter| Wanted {
            base: ModelId::new(&place.0, &adapter.spec.model_ref),
            rank: adapter.spec.max_rank.and_then(|rank| u32::try_from(rank).ok()),
        });
        let before = match &wanted {
            Some(wanted) => self.known.insert(place, wanted.clone()),
            None => self.known.remove(&place),
        };
        if before == wanted {
            return Vec::new();
        }
        before.into_iter().chain(wanted).map(|wanted| wanted.base).collect()
    }

    /// Forgets those that are not `listed`.
    pub(super) fn keep(&mut self, listed: &BTreeSet<(String, String)>) -> Vec<ModelId> {
        let gone: Vec<_> =
            self.known.keys().filter(|place| !listed.contains(*place)).cloned().collect();
        gone.into_iter().flat_map(|place| self.put(place, None)).collect()
    }

    /// Those of `model`, together.
    pub(super) fn of(&self, model: &ModelId) -> objects::Adapters {
        let of_model = || self.known.values().filter(|wanted| wanted.base == *model);
        objects::Adapters {
            count: u32::try_from(of_model().count()).unwrap_or(u32::MAX),
            rank: of_model().filter_map(|wanted| wanted.rank).max(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn adapter(model: &str, rank: Option<i32>) -> LoRAAdapter {
        let spec = json!({
            "modelRef": model, "adapterName": "x", "maxRank": rank,
            "source": { "type": "LocalPath", "uri": "x" },
        });
        LoRAAdapter::new("", serde_json::from_value(spec).unwrap())
    }

    fn place(name: &str) -> (String, String) {
        ("default".to_owned(), name.to_owned())
    }

    #[test]
    fn a_models_adapters_are_counted_with_their_largest_rank() {
        let mut adapters = Adapters::default();
        let (a, b) = (ModelId::new("default", "a"), ModelId::new("default", "b"));
        let first = adapters.put(place("x"), Some(&adapter("a", Some(8))));
        assert_eq!(first, std::slice::from_ref(&a));
        assert_eq!(adapters.put(place("x"), Some(&adapter("a", Some(8)))), []);
        adapters.put(place("y"), Some(&adapter("a", Some(64))));
        adapters.put(place("z"), Some(&adapter("b", None)));
        assert_eq!(adapters.of(&a), objects::Adapters { count: 2, rank: Some(64) });
        assert_eq!(adapters.of(&b), objects::Adapters { count: 1, rank: None });
        assert_eq!(adapters.put(place("y"), Some(&adapter("b", None))), [a, b.clone()]);
        assert_eq!(adapters.keep(&[place("x")].into()), [b.clone(), b.clone()]);
        assert_eq!(adapters.of(&b), objects::Adapters::default());
    }
}
