//! GPUs by `node.status.allocatable`: the last resort, which tells the maker and the count.

use std::collections::BTreeMap;

use super::{Gpu, Survey};
use crate::backends::Vendor;

/// The resources that device plug-ins register, and whose GPUs they are.
const RESOURCES: [(&str, Vendor); 4] = [
    ("nvidia.com/gpu", Vendor::Nvidia),
    ("amd.com/gpu", Vendor::Amd),
    ("gpu.intel.com/i915", Vendor::Intel),
    ("gpu.intel.com/xe", Vendor::Intel),
];

/// The resources of the single MIG profiles begin so.
const MIG: &str = "nvidia.com/mig-";

/// More devices than a node can have: a wrong number must not fill the memory.
const MOST: u64 = 1024;

/// Whose GPUs a resource such as `nvidia.com/gpu` counts; `None` if it counts something else.
pub fn maker(resource: &str) -> Option<Vendor> {
    let named = RESOURCES.iter().find(|(name, _)| *name == resource).map(|(_, vendor)| *vendor);
    named.or_else(|| resource.starts_with(MIG).then_some(Vendor::Nvidia))
}

/// The devices that `allocatable` (resource → quantity) counts.
pub fn read(allocatable: &BTreeMap<String, String>) -> Survey {
    let mut survey = Survey::default();
    for (resource, quantity) in allocatable {
        let Some(vendor) = maker(resource) else { continue };
        let count = quantity.trim().parse::<u64>().unwrap_or_default().min(MOST);
        survey.gpus.extend((0..count).map(|index| Gpu::new(vendor, format!("{resource}/{index}"))));
    }
    survey
}
