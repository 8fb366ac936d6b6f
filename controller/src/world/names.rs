//! Who claims which name: Models that claim the same are told so, each in its own words.

use std::collections::BTreeMap;
use std::sync::Arc;

use flexinfer_core::effective::Effective;
use flexinfer_core::fleet::{Fleet, Served};
use flexinfer_core::ids::ModelId;

/// The conflicts about names, worked out again when names changed.
#[derive(Default)]
pub(super) struct Names {
    stale: bool,
    conflicts: BTreeMap<ModelId, String>,
}

impl Names {
    /// A Model came, went, or changed its names.
    pub(super) fn changed(&mut self) {
        self.stale = true;
    }

    pub(super) fn conflict(&self, model: &ModelId) -> Option<String> {
        self.conflicts.get(model).cloned()
    }

    /// Brings the conflicts up to date with all `models`; those whose conflicts changed are the
    /// answer.
    pub(super) fn settle(&mut self, models: &[Arc<Effective>]) -> Vec<ModelId> {
        if !std::mem::take(&mut self.stale) {
            return Vec::new();
        }
        let served = models.iter().map(|model| Served::new((**model).clone(), "", "", 0)).collect();
        let mut conflicts: BTreeMap<ModelId, Vec<String>> = BTreeMap::new();
        for conflict in Fleet::build(served).1 {
            conflicts.entry(conflict.model.clone()).or_default().push(conflict.to_string());
        }
        let conflicts: BTreeMap<ModelId, String> =
            conflicts.into_iter().map(|(model, all)| (model, all.join("; "))).collect();
        let known = std::mem::replace(&mut self.conflicts, conflicts);
        let ids = known.keys().chain(self.conflicts.keys());
        let mut changed: Vec<ModelId> =
            ids.filter(|id| known.get(*id) != self.conflicts.get(*id)).cloned().collect();
        changed.dedup();
        changed
    }
}

#[cfg(test)]
mod tests {
    use flexinfer_core::effective::Defaults;
    use flexinfer_crds::model::LiteLlm;
    use flexinfer_crds::{Model, ModelSpec};

    use super::*;

    fn claiming(name: &str, alias: &str) -> Arc<Effective> {
        let mut model = Model::new(name, ModelSpec::default());
        model.spec.backend = "simulator".into();
        model.spec.litellm =
            Some(LiteLlm { aliases: vec![alias.to_owned()], ..LiteLlm::default() });
        Arc::new(Effective::of(&model, 1, &Defaults::default()).unwrap())
    }

    #[test]
    fn both_who_claim_an_alias_are_told_and_again_when_one_gives_in() {
        let (a, b) = (claiming("a", "chat"), claiming("b", "chat"));
        let mut names = Names::default();
        names.changed();
        let models = [Arc::clone(&a), b];
        assert_eq!(names.settle(&models).len(), 2);
        assert!(names.conflict(&a.id).unwrap().contains("default/b"));
        assert_eq!(names.settle(&models), [], "nothing changed");
        names.changed();
        assert_eq!(names.settle(&[Arc::clone(&a), claiming("b", "talk")]).len(), 2);
        assert_eq!(names.conflict(&a.id), None);
    }
}
