//! What is made for Models: as watches tell of it, and as the server answers writes. Of both the later one counts, and
//! an answer brings nothing back of whose end a watch has told before.

use std::collections::BTreeSet;
use std::sync::Arc;

use flexinfer_core::ids::GroupId;
use flexinfer_crds::keys;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Service};
use kube::{Resource, ResourceExt as _};

use super::Index;
use crate::world::news::{Named as _, newer};
use crate::world::objects::{Kept, Kind, Objects, Sieve};
use crate::world::owner::Owner;

/// Which of a model's objects these are.
pub(super) type Slot<S> = fn(&mut Objects) -> &mut S;

impl Index {
    pub(in crate::world) fn see_deployment(&mut self, deployment: Deployment) -> Vec<GroupId> {
        self.see(deployment, |objects| &mut objects.deployment)
    }

    pub(in crate::world) fn wrote_deployment(&mut self, deployment: Deployment) {
        self.wrote(Some(Kind::Deployment), deployment, |objects| &mut objects.deployment);
    }

    pub(in crate::world) fn forget_deployment(&mut self, deployment: &Deployment) -> Vec<GroupId> {
        self.forget(deployment, |objects| &mut objects.deployment)
    }

    pub(in crate::world) fn see_service(&mut self, service: Service) -> Vec<GroupId> {
        self.see(service, |objects| &mut objects.service)
    }

    pub(in crate::world) fn wrote_service(&mut self, service: Service) {
        self.wrote(Some(Kind::Service), service, |objects| &mut objects.service);
    }

    pub(in crate::world) fn forget_service(&mut self, service: &Service) -> Vec<GroupId> {
        self.forget(service, |objects| &mut objects.service)
    }

    pub(in crate::world) fn see_files(&mut self, files: ConfigMap) -> Vec<GroupId> {
        self.see(files, |objects| &mut objects.files)
    }

    pub(in crate::world) fn wrote_files(&mut self, files: ConfigMap) {
        self.wrote(Some(Kind::Files), files, |objects| &mut objects.files);
    }

    pub(in crate::world) fn forget_files(&mut self, files: &ConfigMap) -> Vec<GroupId> {
        self.forget(files, |objects| &mut objects.files)
    }

    pub(in crate::world) fn see_pod(&mut self, pod: Pod) -> Vec<GroupId> {
        if Owner::of(&pod).is_none() {
            return self.forget_pod(&pod);
        }
        let of_job = pod.labels().contains_key(keys::CACHE);
        let (jobs, engines): (Slot<_>, Slot<_>) = (|all| &mut all.job_pods, |all| &mut all.pods);
        let (slot, other) = if of_job { (jobs, engines) } else { (engines, jobs) };
        let mut woken = self.lose(&pod, other);
        woken.extend(self.take(pod, slot));
        woken
    }

    /// The server's answer to a change of an engine's pod. It may be gone by now.
    pub(in crate::world) fn changed_pod(&mut self, pod: Pod) {
        let known =
            Owner::of(&pod).and_then(|owner| self.objects.get(&owner)?.pods.get(&pod.name_any()));
        if known.is_some_and(|known| known.metadata.uid == pod.metadata.uid) {
            self.see_pod(pod);
        }
    }

    pub(in crate::world) fn forget_pod(&mut self, pod: &Pod) -> Vec<GroupId> {
        let mut woken = self.lose(pod, |objects| &mut objects.job_pods);
        woken.extend(self.lose(pod, |objects| &mut objects.pods));
        woken
    }

    /// Any claim of a namespace, since a Model may name one that somebody else made.
    pub(in crate::world) fn see_claim(&mut self, claim: PersistentVolumeClaim) -> Vec<GroupId> {
        self.gone.is_there(&claim);
        self.take_claim(claim)
    }

    pub(in crate::world) fn wrote_claim(&mut self, claim: PersistentVolumeClaim) {
        if !self.gone.holds(&claim) {
            self.take_claim(claim);
        }
    }

    fn take_claim(&mut self, claim: PersistentVolumeClaim) -> Vec<GroupId> {
        let (namespace, name) = claim.place();
        let claims = Arc::make_mut(self.claims.entry(namespace.clone()).or_default());
        let known = claims.get(&name);
        if known.is_none_or(|known| !newer(&**known, &claim)) {
            if let Some(other) = known.filter(|known| known.metadata.uid != claim.metadata.uid) {
                self.gone.note(&**other);
            }
            claims.insert(name, Arc::new(claim));
        }
        self.groups_in(&namespace)
    }

    pub(in crate::world) fn forget_claim(&mut self, claim: &PersistentVolumeClaim) -> Vec<GroupId> {
        let (namespace, name) = claim.place();
        self.gone.note(claim);
        if let Some(claims) = self.claims.get_mut(&namespace) {
            let known = claims.get(&name);
            if known.is_some_and(|known| known.metadata.uid == claim.metadata.uid) {
                Arc::make_mut(claims).remove(&name);
            }
            if claims.is_empty() {
                self.claims.remove(&namespace);
            }
        }
        self.groups_in(&namespace)
    }

    /// Forgets the claims that are not `listed`.
    pub(in crate::world) fn keep_claims(
        &mut self,
        listed: &BTreeSet<(String, String)>,
    ) -> Vec<GroupId> {
        let gone = &mut self.gone;
        self.claims.retain(|_, claims| {
            Arc::make_mut(claims).retain(|_, claim| gone.unless(&**claim, listed));
            !claims.is_empty()
        });
        self.groups.keys().cloned().collect()
    }

    /// Forgets the objects of a kind that are not among those `listed` under namespace and name.
    pub(in crate::world) fn keep(
        &mut self,
        kind: Kind,
        listed: &BTreeSet<(String, String)>,
    ) -> Vec<GroupId> {
        let mut changed = Vec::new();
        let mut sieve = Sieve { listed, gone: &mut self.gone, homes: &mut self.homes };
        for (owner, objects) in &mut self.objects {
            if objects.keep(kind, &mut sieve) {
                changed.push(owner.clone());
            }
        }
        self.objects.retain(|_, objects| !objects.empty());
        changed.iter().flat_map(|owner| self.group(owner)).collect()
    }

    /// A watch tells of an object.
    pub(super) fn see<K: Resource, S: Kept<K>>(
        &mut self,
        object: K,
        slot: Slot<S>,
    ) -> Vec<GroupId> {
        self.gone.is_there(&object);
        self.take(object, slot)
    }

    /// The server's answer to this process's own write of an object: as which version it was left, if it is of a
    /// `kind` of which that is asked.
    pub(super) fn wrote<K: Resource, S: Kept<K>>(
        &mut self,
        kind: Option<Kind>,
        object: K,
        slot: Slot<S>,
    ) {
        if self.gone.holds(&object) {
            return;
        }
        let (owner, left) = (Owner::of(&object), kind.zip(object.resource_version()));
        self.take(object, slot);
        if let Some(objects) = owner.and_then(|owner| self.objects.get_mut(&owner)) {
            objects.left.extend(left);
        }
    }

    /// Takes over a sight of an object, unless a later one is known. Another one of its name is gone.
    fn take<K: Resource, S: Kept<K>>(&mut self, object: K, slot: Slot<S>) -> Vec<GroupId> {
        let mut woken = self.uproot(&object, slot);
        let Some(owner) = Owner::of(&object) else { return woken };
        // It is kept elsewhere, by a later sight of it.
        if self.homes.of(&object).is_some_and(|home| *home != owner) {
            return woken;
        }
        let kept = slot(self.objects.entry(owner.clone()).or_default());
        let known = kept.known(&object.name_any());
        if known.is_none_or(|known| !newer(&**known, &object)) {
            if let Some(other) = known.filter(|known| known.meta().uid != object.meta().uid) {
                self.homes.leave(&**other);
                if other.meta().name == object.meta().name {
                    self.gone.note(&**other);
                }
            }
            self.homes.enter(&object, &owner);
            kept.put(object);
        }
        woken.extend(self.group(&owner));
        woken
    }

    /// What has lost the label by which it was found, or has another one now, is no more where it was.
    fn uproot<K: Resource, S: Kept<K>>(&mut self, object: &K, slot: Slot<S>) -> Vec<GroupId> {
        let owner = Owner::of(object);
        let home = owner.and_then(|owner| self.objects.get_mut(&owner));
        if home.is_some_and(|objects| slot(objects).holds(object)) {
            return Vec::new();
        }
        let Some(left) = self.homes.of(object).cloned() else { return Vec::new() };
        let Some(objects) = self.objects.get_mut(&left) else { return Vec::new() };
        let kept = slot(objects);
        let later = kept.known(&object.name_any()).is_some_and(|known| newer(&**known, object));
        if later || !kept.remove_only(object) {
            return Vec::new();
        }
        self.homes.leave(object);
        self.drop_if_empty(&left);
        self.group(&left)
    }

    fn drop_if_empty(&mut self, owner: &Owner) {
        if self.objects.get(owner).is_some_and(Objects::empty) {
            self.objects.remove(owner);
        }
    }

    /// A watch tells that an object is no more.
    pub(super) fn forget<K: Resource, S: Kept<K>>(
        &mut self,
        object: &K,
        slot: Slot<S>,
    ) -> Vec<GroupId> {
        self.gone.note(object);
        self.lose(object, slot)
    }

    /// What has come in its place meanwhile stays.
    fn lose<K: Resource, S: Kept<K>>(&mut self, object: &K, slot: Slot<S>) -> Vec<GroupId> {
        let mut woken = self.uproot(object, slot);
        let Some(owner) = Owner::of(object) else { return woken };
        if self.objects.get_mut(&owner).is_some_and(|objects| slot(objects).remove_only(object)) {
            self.homes.leave(object);
        }
        self.drop_if_empty(&owner);
        woken.extend(self.group(&owner));
        woken
    }
}
