//! What a node offers: its labels, which GPUs it has by them, and what its device plug-ins say.

use std::collections::{BTreeMap, BTreeSet};

use flexinfer_crds::{Quantity, keys};
use k8s_openapi::api::core::v1 as api;

use crate::backends::Vendor;
use crate::hardware::allocatable::maker;
use crate::placement::{Node, is_leaving};

/// What one node offers. Read once per change of the node, not once per model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Offer {
    /// Its name.
    pub name: String,
    /// Its labels, which `nodeSelector`s are compared with.
    pub labels: BTreeMap<String, String>,
    /// Whose GPUs its agent says it has; `None` where no agent has looked.
    pub labelled: Option<Vendor>,
    /// The architecture of those.
    pub architecture: Option<String>,
    /// The memory of one of those, in MiB.
    pub memory_mib: Option<u64>,
    /// How many of those there are by the label.
    pub labelled_count: Option<u64>,
    /// What pods may ask of it, of what counts GPUs, by resource.
    pub resources: BTreeMap<String, u64>,
    /// Its kubelet says that it can run nothing, or has not been heard of for long.
    pub unready: bool,
    /// The taints that keep other pods away, of a node that is about to be taken away.
    pub leaving: Option<Vec<api::Taint>>,
}

impl Offer {
    /// Reads a node.
    pub fn of(node: &api::Node) -> Self {
        let labels = node.metadata.labels.clone().unwrap_or_default();
        let seen = Node::read(&labels, &BTreeMap::new(), []);
        let allocatable = node.status.iter().flat_map(|status| status.allocatable.iter().flatten());
        let resources = allocatable
            .filter(|(name, _)| maker(name).is_some())
            .map(|(name, quantity)| (name.clone(), count(&quantity.0)))
            .collect();
        Self {
            name: node.metadata.name.clone().unwrap_or_default(),
            labelled: seen.vendor.known().copied(),
            architecture: seen.architecture,
            memory_mib: seen.vram.known().copied(),
            labelled_count: seen.count.known().copied(),
            labels,
            resources,
            unready: is_unready(node),
            leaving: leaving(node),
        }
    }

    /// Whose GPUs it has: by its label, and where no agent has looked, by what pods may ask of it.
    pub fn vendors(&self) -> BTreeSet<Vendor> {
        if let Some(vendor) = self.labelled {
            return [vendor].into();
        }
        let counted = self.resources.iter().filter(|(_, count)| **count > 0);
        counted.filter_map(|(name, _)| maker(name)).collect()
    }

    /// How many GPUs of `vendor` it has; `None` where nobody has counted yet.
    pub(super) fn count(&self, vendor: Vendor) -> Option<u64> {
        let counted: u64 = self.resources_of(vendor).map(|(_, count)| count).sum();
        if counted > 0 { Some(counted) } else { self.labelled_count }
    }

    pub(super) fn resources_of(&self, vendor: Vendor) -> impl Iterator<Item = (&str, u64)> {
        let of_vendor = self.resources.iter().filter(move |(name, _)| maker(name) == Some(vendor));
        of_vendor.map(|(name, count)| (name.as_str(), *count))
    }

    /// Whether the node has all labels of `selector`.
    pub(in crate::planning) fn matches(&self, selector: &BTreeMap<String, String>) -> bool {
        selector.iter().all(|(key, value)| self.labels.get(key) == Some(value))
    }

    /// The value of the label that its memory was read from.
    pub(super) fn memory_label(&self) -> Option<&String> {
        self.labels.get(keys::GPU_VRAM)
    }
}

/// A node of which nobody has said yet how it is counts as one that can.
fn is_unready(node: &api::Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut ready = conditions.filter(|condition| condition.type_ == "Ready");
    ready.any(|condition| condition.status != "True")
}

/// What keeps pods off a node that is about to be taken away.
fn leaving(node: &api::Node) -> Option<Vec<api::Taint>> {
    let none = BTreeMap::new();
    let annotations = node.metadata.annotations.as_ref().unwrap_or(&none);
    let taints = || node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let closes = |taint: &&api::Taint| ["NoSchedule", "NoExecute"].contains(&taint.effect.as_str());
    is_leaving(annotations, taints().map(|taint| &*taint.key))
        .then(|| taints().filter(closes).cloned().collect())
}

/// A number that cannot be read offers nothing.
fn count(quantity: &str) -> u64 {
    Quantity::new(quantity).bytes().unwrap_or_default()
}

/// The resource that the vendor's device plug-in registers for whole GPUs.
pub(super) const fn resource(vendor: Vendor) -> Option<&'static str> {
    match vendor {
        Vendor::Nvidia => Some("nvidia.com/gpu"),
        Vendor::Amd => Some("amd.com/gpu"),
        Vendor::Intel => Some("gpu.intel.com/i915"),
        Vendor::Cpu => None,
    }
}
