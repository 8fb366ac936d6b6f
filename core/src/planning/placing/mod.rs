//! On which GPUs a model's pods may run: the nodes' labels and what they offer, against what the Model asks
//! for and the backend can do. The nodes are chosen by the cluster's scheduler; here it is settled what has to
//! be known before a pod can be written, and which nodes would not do.
//!
//! A running engine is not started anew because a node has come or gone: what was settled before stays, as
//! long as some node still offers it.

mod offer;
mod placement;
mod search;
mod vendor;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use flexinfer_crds::Model;
use flexinfer_crds::model::Vendor as Asked;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Taint};

pub use offer::Offer;
pub use placement::{NodeRule, Placement};

use super::objects::{Images, Refusal, selected};
use crate::backends::{Backend, Vendor};
use crate::placement::benchmarks::DeviceClass;
use search::Search;

/// The RuntimeClass that gives NVIDIA's devices to a container, on clusters where that is not the default.
const NVIDIA_CLASS: &str = "nvidia";

/// What is known of the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Cluster<'a> {
    /// Its nodes.
    pub nodes: &'a [Offer],
    /// The names of its RuntimeClasses.
    pub runtime_classes: &'a BTreeSet<String>,
    /// Its StorageClasses, and whether claims of them can grow; `None` where they may not be seen.
    pub storage_classes: Option<&'a BTreeMap<String, bool>>,
}

impl Cluster<'_> {
    /// The kind of the node called `name`; `None` for one that is not known.
    pub fn class_of(&self, name: &str) -> Option<DeviceClass> {
        let node = self.nodes.iter().find(|node| node.name == name)?;
        Some(DeviceClass::of_node(&node.labels))
    }

    /// What the GPUs of the node called `name` are sold as, by its labels.
    pub(super) fn product_of(&self, name: &str) -> Option<String> {
        let node = self.nodes.iter().find(|node| node.name == name)?;
        node.labels.get(flexinfer_crds::keys::GPU_PRODUCT).cloned()
    }

    /// The taints that keep other pods off the node called `name`, if it is about to be taken away.
    pub(super) fn leaving(&self, name: &str) -> Option<&[Taint]> {
        self.nodes.iter().find(|node| node.name == name)?.leaving.as_deref()
    }

    /// Whether the node called `name` is there, and nothing is known of its being taken away.
    pub(super) fn stays(&self, name: &str) -> bool {
        self.nodes.iter().any(|node| node.name == name && node.leaving.is_none())
    }

    /// Whether `claim` can grow, where that is known. One of a class that is not there cannot.
    pub(super) fn can_grow(&self, claim: &PersistentVolumeClaim) -> Option<bool> {
        let classes = self.storage_classes?;
        let class = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_ref());
        Some(class.and_then(|class| classes.get(class)).copied().unwrap_or(false))
    }
}

/// What was settled before, from the Model's status.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settled<'a> {
    /// Whose GPUs.
    pub vendor: Option<Vendor>,
    /// Which architecture.
    pub architecture: Option<&'a str>,
}

/// Where a model may run, and what its author should know about that.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    /// What is settled.
    pub placement: Placement,
    /// What may go wrong; none of it keeps the pod from being made.
    pub doubts: Vec<Doubt>,
}

/// Something that an author should know about the place of a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, strum::IntoStaticStr)]
pub enum Doubt {
    /// No node can take it now; one may come.
    #[error("{0}")]
    NoMatchingNodes(String),
    /// It fits, and not much is left for the key-value cache.
    #[strum(serialize = "VRAMPressure")]
    #[error(
        "the model takes {estimate} MiB of the {memory} MiB of a GPU; little is left for its cache"
    )]
    VramPressure {
        /// What the model takes, in MiB.
        estimate: u64,
        /// The memory of the smallest GPU that it may get, in MiB.
        memory: u64,
    },
    /// Several replicas have to share a node.
    #[strum(serialize = "ClaimOnOneNode")]
    #[error(
        "all replicas share one node, since the claim `{0}` can be used by one node at a time; on a claim with \
         ReadWriteMany they may spread"
    )]
    OneNode(String),
    /// The engine's makers do not promise that it runs there.
    #[strum(serialize = "ExperimentalGPUSupport")]
    #[error("{backend} on {architecture} is experimental")]
    Experimental {
        /// The engine.
        backend: Backend,
        /// The architecture.
        architecture: String,
    },
}

/// Where `model` may run, if anywhere. `images` tells which nodes would need another image.
pub fn place(
    model: &Model,
    backend: Backend,
    cluster: Cluster<'_>,
    settled: Settled<'_>,
    images: &Images,
) -> Result<Placed, Refusal> {
    let gpu = model.spec.gpu.clone().filter(|gpu| gpu.vendor != Some(Asked::Cpu));
    let Some(gpu) = gpu.filter(|_| backend.starts_engine()) else {
        return Ok(Placed { placement: Placement::processor(), doubts: Vec::new() });
    };
    let count = gpu.count.and_then(|count| u32::try_from(count).ok()).unwrap_or(1).max(1);
    let selector = selected(&model.spec.node_selector);
    let selected: Vec<_> = cluster.nodes.iter().filter(|node| node.matches(&selector)).collect();
    let vendor = vendor::settle(&model.spec, backend, &selected, settled.vendor)?;
    let search = Search {
        model,
        backend,
        images,
        vendor,
        count,
        estimate: gpu.vram_estimate_mb.and_then(|mib| u64::try_from(mib).ok()).unwrap_or_default(),
        settled,
    };
    let nodes: Vec<_> =
        selected.into_iter().filter(|node| node.vendors().contains(&vendor)).collect();
    let mut placed = search.place(&nodes)?;
    let class = cluster.runtime_classes.contains(NVIDIA_CLASS) && vendor == Vendor::Nvidia;
    placed.placement.runtime_class = class.then(|| NVIDIA_CLASS.to_owned());
    Ok(placed)
}
