//! The objects, put in one by one; each change answers which groups have to be looked at.

mod bringers;
mod questions;

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
use flexinfer_core::planning::writing::{Contest, Dispute, Writing};
use flexinfer_crds::{LoRAAdapter, Model, keys};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Node, PersistentVolumeClaim, Pod, Service};
use kube::{Resource, ResourceExt as _};

use super::adapters::Adapters;
use super::leases::Leases;
use super::member::Meaning;
use super::names::Names;
use super::news::{Named as _, busier, id_of, newer, renew, same_spec};
use super::nodes::Nodes;
use super::objects::{Kind, Objects};
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
}

/// A Model and what is remembered of it.
struct Seen {
    model: Arc<Model>,
    meaning: Meaning,
    demand: Demand,
    record: Record,
    writing: Writing,
    dispute: Option<Dispute>,
    contests: BTreeMap<Kind, Contest>,
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

    pub(super) fn remember(&mut self, id: &ModelId, record: Record) {
        if let Some(seen) = self.models.get_mut(id) {
            seen.record = record;
        }
    }

    pub(super) fn note_writing(&mut self, id: &ModelId, writing: Writing) {
        if let Some(seen) = self.models.get_mut(id) {
            seen.writing = writing;
        }
    }

    pub(super) fn note_dispute(&mut self, id: &ModelId, dispute: Dispute) -> Vec<GroupId> {
        let Some(seen) = self.models.get_mut(id) else { return Vec::new() };
        seen.dispute = Some(dispute);
        vec![seen.meaning.group(id)]
    }

    pub(super) fn note_contest(&mut self, id: &ModelId, kind: Kind, contest: Contest) {
        if let Some(seen) = self.models.get_mut(id) {
            seen.contests.insert(kind, contest);
        }
    }

    /// Takes over a Model. A report that only renews what was known wakes nobody.
    pub(super) fn see_model(&mut self, model: Model, now: Moment) -> Vec<GroupId> {
        let id = id_of(&model);
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
        let mut woken = BTreeSet::new();
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

    /// Changes what is known of the objects of `object`'s model.
    fn objects<K: Resource>(
        &mut self,
        object: K,
        change: impl FnOnce(&mut Objects, K),
    ) -> Vec<GroupId> {
        let Some(owner) = Owner::of(&object) else { return Vec::new() };
        let objects = self.objects.entry(owner.clone()).or_default();
        change(objects, object);
        if objects.empty() {
            self.objects.remove(&owner);
        }
        self.group(&owner)
    }

    pub(super) fn see_deployment(&mut self, deployment: Deployment) -> Vec<GroupId> {
        self.objects(deployment, |objects, deployment| {
            renew(&mut objects.deployment, deployment);
        })
    }

    /// The server's answer to this process's own write was this version of the object.
    pub(super) fn left<K: Resource>(&mut self, kind: Kind, object: K) {
        self.objects(object, |objects, object| {
            objects.left.extend(object.resource_version().map(|version| (kind, version)));
        });
    }

    pub(super) fn forget_deployment(&mut self, deployment: Deployment) -> Vec<GroupId> {
        self.objects(deployment, |objects, _| objects.deployment = None)
    }

    pub(super) fn see_service(&mut self, service: Service) -> Vec<GroupId> {
        self.objects(service, |objects, service| {
            renew(&mut objects.service, service);
        })
    }

    pub(super) fn forget_service(&mut self, service: Service) -> Vec<GroupId> {
        self.objects(service, |objects, _| objects.service = None)
    }

    pub(super) fn see_files(&mut self, files: ConfigMap) -> Vec<GroupId> {
        self.objects(files, |objects, files| renew(&mut objects.files, files))
    }

    pub(super) fn forget_files(&mut self, files: ConfigMap) -> Vec<GroupId> {
        self.objects(files, |objects, _| objects.files = None)
    }

    /// Any claim of a namespace, since a Model may name one that somebody else made.
    pub(super) fn see_claim(&mut self, claim: PersistentVolumeClaim) -> Vec<GroupId> {
        let (namespace, name) = claim.place();
        let claims = Arc::make_mut(self.claims.entry(namespace.clone()).or_default());
        if claims.get(&name).is_none_or(|known| !newer(&**known, &claim)) {
            claims.insert(name, Arc::new(claim));
        }
        self.groups_in(&namespace)
    }

    pub(super) fn forget_claim(&mut self, claim: &PersistentVolumeClaim) -> Vec<GroupId> {
        let (namespace, name) = claim.place();
        if let Some(claims) = self.claims.get_mut(&namespace) {
            Arc::make_mut(claims).remove(&name);
        }
        self.groups_in(&namespace)
    }

    /// Forgets the claims that are not `listed`.
    pub(super) fn keep_claims(&mut self, listed: &BTreeSet<(String, String)>) -> Vec<GroupId> {
        for (namespace, claims) in &mut self.claims {
            let there = |name: &String| listed.contains(&(namespace.clone(), name.clone()));
            Arc::make_mut(claims).retain(|name, _| there(name));
        }
        self.groups.keys().cloned().collect()
    }

    pub(super) fn see_job(&mut self, job: Job) -> Vec<GroupId> {
        self.objects(job, |objects, job| {
            let name = job.name_any();
            if objects.jobs.get(&name).is_none_or(|known| !newer(&**known, &job)) {
                objects.jobs.insert(name, Arc::new(job));
            }
        })
    }

    pub(super) fn forget_job(&mut self, job: Job) -> Vec<GroupId> {
        self.objects(job, |objects, job| {
            objects.jobs.remove(&job.name_any());
        })
    }

    pub(super) fn see_pod(&mut self, pod: Pod) -> Vec<GroupId> {
        self.objects(pod, |objects, pod| {
            let of_job = pod.labels().contains_key(keys::CACHE);
            let pods = if of_job { &mut objects.job_pods } else { &mut objects.pods };
            let name = pod.name_any();
            if pods.get(&name).is_none_or(|known| !newer(&**known, &pod)) {
                pods.insert(name, Arc::new(pod));
            }
        })
    }

    /// The server's answer to a change of an engine's pod. It may be gone by now.
    pub(super) fn changed_pod(&mut self, pod: Pod) {
        let known =
            Owner::of(&pod).and_then(|owner| self.objects.get(&owner)?.pods.get(&pod.name_any()));
        if known.is_some_and(|known| known.metadata.uid == pod.metadata.uid) {
            self.see_pod(pod);
        }
    }

    pub(super) fn forget_pod(&mut self, pod: Pod) -> Vec<GroupId> {
        self.objects(pod, |objects, pod| {
            objects.pods.remove(&pod.name_any());
            objects.job_pods.remove(&pod.name_any());
        })
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

    pub(super) fn listed_nodes(&mut self, listed: &[String]) -> Vec<GroupId> {
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

    /// Forgets the objects of a kind that are not among those `listed` under namespace and name.
    pub(super) fn keep(&mut self, kind: Kind, listed: &BTreeSet<(String, String)>) -> Vec<GroupId> {
        let mut changed = Vec::new();
        for (owner, objects) in &mut self.objects {
            if objects.keep(kind, listed) {
                changed.push(owner.clone());
            }
        }
        self.objects.retain(|_, objects| !objects.empty());
        changed.iter().flat_map(|owner| self.group(owner)).collect()
    }
}
