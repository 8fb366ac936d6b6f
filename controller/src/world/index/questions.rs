//! What the index is asked: a whole group as it is, and which groups something is about.

use std::sync::Arc;

use flexinfer_core::ids::{GroupId, ModelId};
use flexinfer_core::moment::Moment;
use k8s_openapi::api::core::v1::Pod;

use super::Index;
use crate::world::Sight;
use crate::world::member::Member;
use crate::world::owner::Owner;

impl Index {
    pub(in crate::world) fn models(&self) -> usize {
        self.models.len()
    }

    pub(in crate::world) fn knows(&self, model: &ModelId) -> bool {
        self.models.contains_key(model)
    }

    pub(in crate::world) fn sight(&self, group: &GroupId, now: Moment) -> Option<Sight> {
        let members: Vec<Member> =
            self.groups.get(group)?.iter().filter_map(|id| self.member(id)).collect();
        if members.is_empty() {
            return None;
        }
        let namespace = members.first().map(|member| &*member.id.namespace);
        let claims = namespace.and_then(|namespace| self.claims.get(namespace).cloned());
        let claims = claims.unwrap_or_default();
        let lease = self.leases.on(group).filter(|until| now < *until);
        Some(Sight {
            group: group.clone(),
            members,
            lease,
            claims,
            results: Arc::clone(&self.results),
            offers: self.nodes.offers(),
            kv_cache_usage: self.nodes.kv_cache_usage(),
        })
    }

    fn member(&self, id: &ModelId) -> Option<Member> {
        let seen = self.models.get(id)?;
        let objects = self.objects.get(&Owner::model(id));
        Some(Member {
            id: id.clone(),
            model: Arc::clone(&seen.model),
            effective: seen.meaning.effective.clone(),
            complaints: seen.meaning.complaints.clone(),
            adapters: self.adapters.of(id),
            demand: seen.demand.clone(),
            record: seen.record.clone(),
            writing: seen.writing.clone(),
            deployment: objects.and_then(|objects| objects.deployment.clone()),
            service: objects.and_then(|objects| objects.service.clone()),
            files: objects.and_then(|objects| objects.files.clone()),
            jobs: objects.map(|found| found.jobs.values().cloned().collect()).unwrap_or_default(),
            job_pods: objects
                .map(|found| found.job_pods.values().cloned().collect())
                .unwrap_or_default(),
            pods: objects.map(|found| found.pods.values().cloned().collect()).unwrap_or_default(),
            name_conflict: self.names.conflict(id),
            dispute: seen.dispute.clone(),
            contests: seen.contests.clone(),
            progress: seen.progress.clone(),
            left: objects.map(|objects| objects.left.clone()).unwrap_or_default(),
        })
    }

    /// The group of the model that `owner` is.
    pub(super) fn group(&self, owner: &Owner) -> Vec<GroupId> {
        let id = self.owners.get(owner);
        let seen = id.and_then(|id| Some((id, self.models.get(id)?)));
        seen.map(|(id, seen)| seen.meaning.group(id)).into_iter().collect()
    }

    pub(super) fn groups_in(&self, namespace: &str) -> Vec<GroupId> {
        let inside = |group: &&GroupId| match group {
            GroupId::Shared { namespace: of, .. } => **of == *namespace,
            GroupId::Alone(id) => *id.namespace == *namespace,
        };
        self.groups.keys().filter(inside).cloned().collect()
    }

    /// The groups of the models on `node` that have wishes about their key-value cache.
    pub(super) fn groups_on(&self, node: &str) -> Vec<GroupId> {
        let on_it = |pod: &Pod| {
            pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref() == Some(node))
        };
        let wishes = self.models.iter().filter(|(_, seen)| seen.model.spec.kv_cache.is_some());
        let there = wishes.filter(|(id, _)| {
            let objects = self.objects.get(&Owner::model(id));
            objects.is_some_and(|found| found.pods.values().any(|pod| on_it(pod)))
        });
        there.map(|(id, seen)| seen.meaning.group(id)).collect()
    }

    pub(in crate::world) fn groups_of(&self, models: &[ModelId]) -> Vec<GroupId> {
        let known = models.iter().filter_map(|id| Some((id, self.models.get(id)?)));
        known.map(|(id, seen)| seen.meaning.group(id)).collect()
    }

    pub(super) fn all_if(&self, changed: bool) -> Vec<GroupId> {
        if changed { self.groups.keys().cloned().collect() } else { Vec::new() }
    }
}
