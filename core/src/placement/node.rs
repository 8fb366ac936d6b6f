//! A node, as its labels, annotations and taints describe it. Read once per change of the node, not once
//! per pod.

use std::collections::BTreeMap;

use flexinfer_crds::{Quantity, keys};
use jiff::Timestamp;

use super::benchmarks::DeviceClass;
use super::leaving::is_leaving;
use super::said::{Said, amount};
use crate::backends::Vendor;

/// A node, as placement sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// What kind it is, for what was measured on its like.
    pub class: DeviceClass,
    /// Who made its GPUs.
    pub vendor: Said<Vendor>,
    /// The architecture of its GPUs.
    pub architecture: Option<String>,
    /// How many devices it has.
    pub count: Said<u64>,
    /// The memory of one device, in MiB.
    pub vram: Said<u64>,
    /// Whether its GPUs compute in four-bit integers.
    pub int4: Said<bool>,
    /// Free memory over all devices, in MiB.
    pub free: Said<u64>,
    /// Free memory of each device, in MiB.
    pub free_each: Said<Vec<u64>>,
    /// When the free memory was measured.
    pub measured_at: Said<Timestamp>,
    /// Percent of the GPUs in use.
    pub utilization: Said<f64>,
    /// The share of the key-value cache in use, 0 to 1.
    pub kv_cache_usage: Said<f64>,
    /// What it costs per hour.
    pub cost: Said<f64>,
    /// Why nothing new should be placed here, if its agent says so.
    pub out_of_order: Option<String>,
    /// Whether it is about to be taken away.
    pub leaving: bool,
}

impl Node {
    /// Reads a node from its `labels`, `annotations` and the keys of its `taints`.
    pub fn read<'a>(
        labels: &BTreeMap<String, String>,
        annotations: &BTreeMap<String, String>,
        taints: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let label = |key: &str| labels.get(key).map(String::as_str);
        let annotation = |key: &str| annotations.get(key).map(String::as_str);
        let class = DeviceClass::of_node(labels);
        let health = annotation(keys::GPU_HEALTH).unwrap_or_default();
        Self {
            vendor: Said::of(label(keys::GPU_VENDOR), vendor),
            architecture: Some(class.architecture().to_owned()).filter(|name| !name.is_empty()),
            count: Said::of(label(keys::GPU_COUNT), |text| text.parse().ok()),
            vram: Said::of(label(keys::GPU_VRAM), mebibytes),
            int4: Said::of(label(keys::GPU_INT4), |text| text.parse().ok()),
            free: Said::of(annotation(keys::GPU_FREE_MEMORY), whole),
            free_each: Said::of(annotation(keys::GPU_FREE_MEMORY_EACH), each),
            measured_at: Said::of(annotation(keys::GPU_MEASURED_AT), |text| text.parse().ok()),
            utilization: Said::of(annotation(keys::GPU_UTILIZATION), amount),
            kv_cache_usage: Said::of(annotation(keys::KV_CACHE_USAGE), amount),
            cost: Said::of(annotation(keys::COST), amount),
            out_of_order: health.starts_with("unknown").then(|| health.to_owned()),
            leaving: is_leaving(annotations, taints),
            class,
        }
    }

    /// The first key whose text is needed to place a pod and cannot be read.
    pub fn garbage(&self) -> Option<&'static str> {
        let needed = [
            (keys::GPU_VENDOR, self.vendor.is_garbage()),
            (keys::GPU_COUNT, self.count.is_garbage()),
            (keys::GPU_VRAM, self.vram.is_garbage()),
            (keys::GPU_INT4, self.int4.is_garbage()),
            (keys::GPU_FREE_MEMORY, self.free.is_garbage()),
            (keys::GPU_FREE_MEMORY_EACH, self.free_each.is_garbage()),
            (keys::GPU_MEASURED_AT, self.measured_at.is_garbage()),
        ];
        needed.into_iter().find_map(|(key, garbage)| garbage.then_some(key))
    }

    /// Whether anything that ranks the node cannot be read; such a node comes last.
    pub(super) fn cannot_be_ranked(&self) -> bool {
        let ranking = [&self.utilization, &self.kv_cache_usage, &self.cost];
        self.garbage().is_some() || ranking.into_iter().any(Said::is_garbage)
    }
}

fn vendor(text: &str) -> Option<Vendor> {
    let vendors = [Vendor::Nvidia, Vendor::Amd, Vendor::Intel];
    vendors.into_iter().find(|vendor| vendor.to_string().eq_ignore_ascii_case(text))
}

fn mebibytes(text: &str) -> Option<u64> {
    Quantity::new(text).bytes().ok().map(|bytes| bytes >> 20)
}

/// The original's agents may write a fraction.
fn whole(text: &str) -> Option<u64> {
    let number = amount(text)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is not negative; more than 2^64 MiB become the most there is"
    )]
    let number = number as u64;
    Some(number)
}

fn each(text: &str) -> Option<Vec<u64>> {
    text.split(',').map(|one| one.trim().parse().ok()).collect()
}
