//! What nodes offer, and whether anything changed that a placement depends on: what an agent or a
//! kubelet writes all the time is not it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flexinfer_core::planning::placing::{Cluster, Offer};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt as _;

/// The cluster as placements see it, at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offers {
    nodes: Arc<Vec<Offer>>,
    runtime_classes: Arc<BTreeSet<String>>,
}

impl Offers {
    pub(crate) fn cluster(&self) -> Cluster<'_> {
        Cluster { nodes: &self.nodes, runtime_classes: &self.runtime_classes }
    }
}

/// The nodes by name.
#[derive(Default)]
pub(super) struct Nodes {
    known: BTreeMap<String, Offer>,
    offers: Offers,
}

impl Nodes {
    pub(super) fn offers(&self) -> Offers {
        self.offers.clone()
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
        self.known.remove(name).is_some() && self.changed()
    }

    /// Forgets every node that is not in `listed`.
    pub(super) fn keep(&mut self, listed: &[String]) -> bool {
        let before = self.known.len();
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
}
