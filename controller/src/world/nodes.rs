//! What nodes offer, and whether anything changed that a placement depends on: what an agent or a
//! kubelet writes all the time is not it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flexinfer_core::planning::placing::{Cluster, Offer};
use flexinfer_crds::keys;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;

/// The cluster as placements see it, at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offers {
    nodes: Arc<Vec<Offer>>,
    runtime_classes: Arc<BTreeSet<String>>,
    /// Whether claims of a StorageClass can grow; `None` until it is known which there are.
    storage_classes: Option<Arc<BTreeMap<String, bool>>>,
}

impl Offers {
    pub(crate) fn cluster(&self) -> Cluster<'_> {
        Cluster {
            nodes: &self.nodes,
            runtime_classes: &self.runtime_classes,
            storage_classes: self.storage_classes.as_deref(),
        }
    }
}

/// The nodes by name.
#[derive(Default)]
pub(super) struct Nodes {
    known: BTreeMap<String, Offer>,
    offers: Offers,
    /// How full the fullest key-value cache of a node is, as its agent measured it.
    kv_cache_usage: Arc<BTreeMap<String, f64>>,
}

impl Nodes {
    pub(super) fn offers(&self) -> Offers {
        self.offers.clone()
    }

    pub(super) fn kv_cache_usage(&self) -> Arc<BTreeMap<String, f64>> {
        Arc::clone(&self.kv_cache_usage)
    }

    /// Whether the share in use of the key-value cache on `node` has changed.
    pub(super) fn see_kv_cache(&mut self, node: &Node) -> bool {
        let told = node.annotations().get(keys::KV_CACHE_USAGE);
        let usage = told.and_then(|text| text.trim().parse::<f64>().ok());
        let usage = usage.filter(|usage| (0.0..=1.0).contains(usage));
        let name = node.name_any();
        if self.kv_cache_usage.get(&name).copied() == usage {
            return false;
        }
        let known = Arc::make_mut(&mut self.kv_cache_usage);
        match usage {
            Some(usage) => known.insert(name, usage),
            None => known.remove(&name),
        };
        true
    }

    /// Whether a placement could come out differently with `node`.
    pub(super) fn see(&mut self, node: &Node) -> bool {
        let (name, offer) = (node.name_any(), Offer::of(node));
        if self.known.get(&name) == Some(&offer) {
            return false;
        }
        self.known.insert(name, offer);
        self.changed()
    }

    pub(super) fn forget(&mut self, name: &str) -> bool {
        Arc::make_mut(&mut self.kv_cache_usage).remove(name);
        self.known.remove(name).is_some() && self.changed()
    }

    /// Forgets every node that is not in `listed`.
    pub(super) fn keep(&mut self, listed: &BTreeSet<String>) -> bool {
        let before = self.known.len();
        Arc::make_mut(&mut self.kv_cache_usage).retain(|name, _| listed.contains(name));
        self.known.retain(|name, _| listed.contains(name));
        before != self.known.len() && self.changed()
    }

    fn changed(&mut self) -> bool {
        self.offers.nodes = Arc::new(self.known.values().cloned().collect());
        true
    }

    /// A RuntimeClass came or went.
    pub(super) fn see_runtime_class(&mut self, name: &str, there: bool) -> bool {
        let classes = Arc::make_mut(&mut self.offers.runtime_classes);
        if there { classes.insert(name.to_owned()) } else { classes.remove(name) }
    }

    /// Forgets every RuntimeClass that is not in `listed`.
    pub(super) fn keep_runtime_classes(&mut self, listed: &BTreeSet<String>) -> bool {
        let classes = Arc::make_mut(&mut self.offers.runtime_classes);
        let before = classes.len();
        classes.retain(|name| listed.contains(name));
        before != classes.len()
    }

    /// All StorageClasses that there are now.
    pub(super) fn see_storage_classes(&mut self, classes: &BTreeMap<String, bool>) -> bool {
        if self.offers.storage_classes.as_deref() == Some(classes) {
            return false;
        }
        self.offers.storage_classes = Some(Arc::new(classes.clone()));
        true
    }
}
