//! What is settled about the place of a model's pods before they are written.

use std::collections::BTreeMap;

use super::offer::resource;
use crate::backends::{Gpu, Vendor};

/// The place of a model's pods, as far as it is known before the scheduler chooses a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Whose GPUs; [`Vendor::Cpu`] for none.
    pub vendor: Vendor,
    /// The architecture, if all nodes that are left have the same: `sm_89`, `gfx1100`.
    pub architecture: Option<String>,
    /// How many GPUs one engine uses; 0 for [`Vendor::Cpu`].
    pub count: u32,
    /// The resource that a pod asks for to get them, such as `nvidia.com/gpu`; `None` if it asks for none.
    pub resource: Option<String>,
    /// The RuntimeClass without which a container gets no device, where the cluster has one.
    pub runtime_class: Option<String>,
    /// The memory of one GPU in MiB, where the nodes tell: the smallest of those that are left.
    pub memory_mib: Option<u64>,
    /// What a node's labels must be, beside the Model's own `nodeSelector`.
    pub rules: Vec<NodeRule>,
}

/// What one label of a node must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeRule {
    /// The label has one of these values.
    In {
        /// The label's key.
        key: String,
        /// Its values.
        values: Vec<String>,
    },
    /// The label has none of these values, or the node lacks it.
    NotIn {
        /// The label's key.
        key: String,
        /// The values that would not do.
        values: Vec<String>,
    },
}

impl NodeRule {
    /// Whether a node with these labels would do.
    pub fn allows(&self, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Self::In { key, values } => labels.get(key).is_some_and(|label| values.contains(label)),
            Self::NotIn { key, values } => {
                labels.get(key).is_none_or(|label| !values.contains(label))
            }
        }
    }
}

impl Placement {
    /// No GPU: any node will do.
    pub const fn processor() -> Self {
        Self {
            vendor: Vendor::Cpu,
            architecture: None,
            count: 0,
            resource: None,
            runtime_class: None,
            memory_mib: None,
            rules: Vec::new(),
        }
    }

    /// `count` GPUs of `vendor`, of which nothing else is known.
    pub fn gpus(vendor: Vendor, count: u32) -> Self {
        let resource = resource(vendor).map(str::to_owned);
        Self { vendor, count, resource, ..Self::processor() }
    }

    /// The GPUs, as backends are told of them.
    pub fn gpu(&self) -> Gpu {
        Gpu { vendor: self.vendor, architecture: self.architecture.clone(), count: self.count }
    }

    /// What a container asks for to get its GPUs, by resource.
    pub fn resources(&self) -> BTreeMap<&str, u32> {
        self.resource.as_deref().map(|resource| (resource, self.count)).into_iter().collect()
    }
}
