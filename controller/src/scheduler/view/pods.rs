//! Pods that have a node and ask for GPUs: what they take of it, and of their tenant's budget. Each counts
//! once, by its uid, however often it is bound or shown.

use std::collections::{BTreeMap, HashMap};

use flexinfer_core::placement::{Pod, Reservation};
use k8s_openapi::api::core::v1 as api;

use super::{Shelf, State};

pub(super) struct Pods {
    pub(super) tenant_label: Option<String>,
    pub(super) complete: bool,
    bound: HashMap<String, Bound>,
    by_node: HashMap<String, BTreeMap<String, Reservation>>,
    listed: HashMap<String, Vec<Reservation>>,
    gpus: HashMap<String, u64>,
}

/// A pod that has a node.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    node: String,
    tenant: String,
    reservation: Reservation,
}

impl Pods {
    pub(super) fn new(tenant_label: Option<String>) -> Self {
        Self {
            tenant_label,
            complete: false,
            bound: HashMap::new(),
            by_node: HashMap::new(),
            listed: HashMap::new(),
            gpus: HashMap::new(),
        }
    }

    pub(super) fn on(&self, node: &str) -> &[Reservation] {
        self.listed.get(node).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn gpus_of_tenant(&self, tenant: &str, but: &str) -> u64 {
        let own = self.bound.get(but).filter(|bound| bound.tenant == tenant);
        let own = own.map(|bound| bound.reservation.gpus).unwrap_or_default();
        self.gpus.get(tenant).copied().unwrap_or_default().saturating_sub(own)
    }

    fn remove(&mut self, uid: &str) {
        let Some(bound) = self.bound.remove(uid) else { return };
        if let Some(gpus) = self.gpus.get_mut(&bound.tenant) {
            *gpus = gpus.saturating_sub(bound.reservation.gpus);
        }
        if let Some(pods) = self.by_node.get_mut(&bound.node) {
            pods.remove(uid);
        }
        self.list(&bound.node);
    }

    fn insert(&mut self, uid: String, bound: Bound) {
        let gpus = self.gpus.entry(bound.tenant.clone()).or_default();
        *gpus = gpus.saturating_add(bound.reservation.gpus);
        let pods = self.by_node.entry(bound.node.clone()).or_default();
        pods.insert(uid.clone(), bound.reservation.clone());
        self.list(&bound.node);
        self.bound.insert(uid, bound);
    }

    /// Questions are more frequent than bindings, so the list is made here.
    fn list(&mut self, node: &str) {
        let pods = self.by_node.get(node).filter(|pods| !pods.is_empty());
        if let Some(list) = pods.map(|pods| pods.values().cloned().collect()) {
            self.listed.insert(node.to_owned(), list);
        } else {
            self.by_node.remove(node);
            self.listed.remove(node);
        }
    }
}

impl Shelf<api::Pod> for Pods {
    type Kept = Bound;

    fn read(object: &api::Pod, tenant_label: Option<&str>) -> (String, Option<Bound>) {
        let pod = Pod::read(object, tenant_label);
        let bound = Reservation::of(object);
        let bound =
            bound.map(|(node, reservation)| Bound { node, tenant: pod.tenant, reservation });
        (pod.uid, bound)
    }

    fn of(state: &mut State) -> &mut Self {
        &mut state.pods
    }

    fn put(&mut self, key: String, kept: Option<Bound>) {
        self.remove(&key);
        if let Some(bound) = kept {
            self.insert(key, bound);
        }
    }

    fn replace(&mut self, all: Vec<(String, Option<Bound>)>) {
        *self = Self { complete: true, ..Self::new(self.tenant_label.take()) };
        for (key, kept) in all {
            self.put(key, kept);
        }
    }
}
