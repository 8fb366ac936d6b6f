//! The objects, put in one by one; each change answers which groups have to be looked at.

mod bringers;
mod jobs;
mod made;
mod questions;
mod remembered;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flexinfer_core::effective::Effective;
use flexinfer_core::ids::{GroupId, ModelId};
use flexinfer_core::moment::Moment;
use flexinfer_core::planning::group::Record;
use flexinfer_core::planning::model::Demand;
use flexinfer_core::planning::progress::Progress;
use flexinfer_core::planning::status::remembered;
use flexinfer_core::planning::writing::{Dispute, Writing};
use flexinfer_crds::{LoRAAdapter, Model};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::ResourceExt as _;

use super::adapters::Adapters;
use super::gone::Gone;
use super::homes::Homes;
use super::leases::Leases;
use super::member::{Contests, Meaning};
use super::names::Names;
use super::news::{busier, id_of, newer, same_spec};
use super::nodes::Nodes;
use super::objects::Objects;
use super::owner::Owner;
use super::{Claims, Results};

pub(crate) use bringers::Bringer;

/// Everything that is known, by model.
#[derive(Default)]
pub(super) struct Index {
    models: BTreeMap<ModelId, Seen>,
    groups: BTreeMap<GroupId, BTreeSet<ModelId>>,
    owners: BTreeMap<Owner, ModelId>,
    objects: BTreeMap<Owner, Objects>,
    leases: Leases,
    claims: BTreeMap<String, Claims>,
    results: Results,
    nodes: Nodes,
    names: Names,
    adapters: Adapters,
    gone: Gone,
    homes: Homes,
}

/// A Model and what is remembered of it.
struct Seen {
    model: Arc<Model>,
    meaning: Meaning,
    demand: Demand,
    record: Record,
    writing: Writing,
    dispute: Option<Dispute>,
    contests: Contests,
    progress: Option<Progress>,
}

impl Index {
    /// Brings conflicts about names up to date; the groups of those whose conflicts changed.
    pub(super) fn settle_names(&mut self) -> Vec<GroupId> {
        let models: Vec<Arc<Effective>> =
            self.models.values().filter_map(|seen| seen.meaning.effective.clone()).collect();
        let changed = self.names.settle(&models);
        let groups = changed.iter().filter_map(|id| Some(self.models.get(id)?.meaning.group(id)));
        groups.collect()
    }

    /// Takes over a Model. A report that only renews what was known wakes nobody.
    pub(super) fn see_model(&mut self, model: Model, now: Moment) -> Vec<GroupId> {
        let id = id_of(&model);
        let mut woken = BTreeSet::new();
        let another = |known: &Seen| known.model.metadata.uid != model.metadata.uid;
        if self.models.get(&id).is_some_and(another) {
            woken.extend(self.forget_model(&id));
        }
        let known = self.models.get(&id);
        if known.is_some_and(|known| newer(&*known.model, &model)) {
            return Vec::new();
        }
        let before = known.map(|known| known.meaning.group(&id));
        let meaning = match known {
            Some(known) if same_spec(&known.model, &model) => known.meaning.clone(),
            known => Meaning::of(&model, known.and_then(|known| known.meaning.effective.as_ref())),
        };
        let group = meaning.group(&id);
        if !known.is_some_and(|known| same_spec(&known.model, &model)) {
            self.names.changed();
        }
        let status = model.status.as_ref();
        let (dispute, contests) =
            known.map(|known| (known.dispute.clone(), known.contests.clone())).unwrap_or_default();
        let progress = known.and_then(|known| known.progress.clone());
        let (mut demand, record, writing) = known.map_or_else(
            || (Demand::default(), remembered(&id, status), Writing::remembered(status)),
            |known| (known.demand.clone(), known.record.clone(), known.writing.clone()),
        );
        demand.look(model.status.as_ref(), now);
        let moved = known.is_none_or(|known| {
            !same_spec(&known.model, &model)
                || record.draining.is_some()
                || busier(known.model.status.as_ref(), model.status.as_ref())
        });
        if let Some(before) = before.filter(|before| *before != group) {
            self.leave(&before, &id);
            woken.insert(before);
        }
        self.groups.entry(group.clone()).or_default().insert(id.clone());
        self.owners.insert(Owner::model(&id), id.clone());
        let model = Arc::new(model);
        let seen = Seen { model, meaning, demand, record, writing, dispute, contests, progress };
        self.models.insert(id, seen);
        if moved {
            woken.insert(group);
        }
        woken.into_iter().collect()
    }

    /// The server's answer to a write of a Model. It may be gone by now: its last finalizer was taken from it, say.
    pub(super) fn wrote_model(&mut self, model: Model, now: Moment) -> Vec<GroupId> {
        let known = self.models.get(&id_of(&model));
        let there = known.is_some_and(|known| known.model.metadata.uid == model.metadata.uid);
        if there { self.see_model(model, now) } else { Vec::new() }
    }

    pub(super) fn forget_model(&mut self, id: &ModelId) -> Vec<GroupId> {
        let Some(seen) = self.models.remove(id) else { return Vec::new() };
        self.names.changed();
        let group = seen.meaning.group(id);
        self.leave(&group, id);
        self.owners.remove(&Owner::model(id));
        vec![group]
    }

    fn leave(&mut self, group: &GroupId, id: &ModelId) {
        if let Some(members) = self.groups.get_mut(group) {
            members.remove(id);
            if members.is_empty() {
                self.groups.remove(group);
            }
        }
    }

    /// After a time without sight of the Models: those that are not `listed` are gone, and no
    /// gateway was heard meanwhile.
    pub(super) fn listed_models(&mut self, listed: &[ModelId], now: Moment) -> Vec<GroupId> {
        let gone: Vec<ModelId> =
            self.models.keys().filter(|id| !listed.contains(id)).cloned().collect();
        let mut woken: Vec<GroupId> = gone.iter().flat_map(|id| self.forget_model(id)).collect();
        for seen in self.models.values_mut() {
            seen.demand.renew_all(now);
        }
        woken.extend(self.groups.keys().cloned());
        woken
    }

    pub(super) fn see_node(&mut self, node: &Node) -> Vec<GroupId> {
        let fuller = self.nodes.see_kv_cache(node);
        let changed = self.nodes.see(node);
        if fuller && !changed { self.groups_on(&node.name_any()) } else { self.all_if(changed) }
    }

    pub(super) fn forget_node(&mut self, node: &Node) -> Vec<GroupId> {
        let changed = self.nodes.forget(&node.name_any());
        self.all_if(changed)
    }

    pub(super) fn keep_nodes(&mut self, listed: &BTreeSet<String>) -> Vec<GroupId> {
        let changed = self.nodes.keep(listed);
        self.all_if(changed)
    }

    /// A RuntimeClass came or went.
    pub(super) fn see_runtime_class(&mut self, name: &str, there: bool) -> Vec<GroupId> {
        let changed = self.nodes.see_runtime_class(name, there);
        self.all_if(changed)
    }

    /// Forgets the RuntimeClasses that are not `listed`.
    pub(super) fn keep_runtime_classes(&mut self, listed: &BTreeSet<String>) -> Vec<GroupId> {
        let changed = self.nodes.keep_runtime_classes(listed);
        self.all_if(changed)
    }

    /// These StorageClasses there are, and whether claims of each can grow.
    pub(super) fn see_storage_classes(&mut self, classes: &BTreeMap<String, bool>) -> Vec<GroupId> {
        let changed = self.nodes.see_storage_classes(classes);
        self.all_if(changed)
    }

    /// A LoRAAdapter is now this, or is no more.
    pub(super) fn see_adapter(
        &mut self,
        place: (String, String),
        adapter: Option<&LoRAAdapter>,
    ) -> Vec<GroupId> {
        let moved = self.adapters.put(place, adapter);
        self.groups_of(&moved)
    }

    /// Forgets the adapters that are not `listed`.
    pub(super) fn keep_adapters(&mut self, listed: &BTreeSet<(String, String)>) -> Vec<GroupId> {
        let moved = self.adapters.keep(listed);
        self.groups_of(&moved)
    }

    pub(super) fn see_lease(&mut self, map: &ConfigMap) -> Vec<GroupId> {
        self.leases.see(map)
    }

    pub(super) fn forget_lease(&mut self, map: &ConfigMap) -> Vec<GroupId> {
        self.leases.forget(map)
    }

    /// Forgets the leases that are not `listed`.
    pub(super) fn keep_leases(&mut self, listed: &BTreeSet<(String, String)>) -> Vec<GroupId> {
        self.leases.keep(listed)
    }

    /// What benchmarks have measured, all of it.
    pub(super) fn see_results(&mut self, results: BTreeMap<String, String>) -> Vec<GroupId> {
        let changed = *self.results != results;
        self.results = Arc::new(results);
        self.all_if(changed)
    }
}
