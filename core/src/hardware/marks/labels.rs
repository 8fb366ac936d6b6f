//! A node's labels. They change only when the hardware does.

use flexinfer_crds::keys;

use super::{Node, Texts};
use crate::backends::Vendor;
use crate::hardware::{Representative, product_label};

/// The keys that describe GPUs.
const OF_GPUS: [&str; 6] = [
    keys::GPU_VENDOR,
    keys::GPU_ARCHITECTURE,
    keys::GPU_VRAM,
    keys::GPU_COUNT,
    keys::GPU_INT4,
    keys::GPU_PRODUCT,
];

const GIB: u64 = 1 << 30;

/// The labels of a node whose GPUs `chosen` stands for, on a processor with or without AVX-512. What is not
/// known of a GPU of the same maker as `known_vendor` (the label that the node has) is left as it is; of
/// another maker's it is removed.
pub fn labels(chosen: Option<&Representative>, avx512: bool, known_vendor: Option<&str>) -> Texts {
    let mut labels = Texts::new();
    labels.insert(keys::CPU_AVX512.to_owned(), Some(avx512.to_string()));
    let Some(chosen) = chosen else { return labels };
    let vendor = vendor_name(chosen.vendor);
    let values = [
        Some(vendor.to_owned()),
        chosen.architecture.clone(),
        chosen.vram.map(gibibytes),
        Some(chosen.count.to_string()),
        chosen.int4().map(|int4| int4.to_string()),
        chosen.product.as_deref().and_then(product_label),
    ];
    let another = known_vendor.is_some_and(|known| known != vendor);
    let named = OF_GPUS.into_iter().zip(values).filter(|(_, value)| value.is_some() || another);
    labels.extend(named.map(|(key, value)| (key.to_owned(), value)));
    labels
}

/// The label by which the agent of `node` is found for scraping, unless somebody has written it already.
pub fn enabled(node: &Node) -> Texts {
    let unsaid = !node.labels.contains_key(keys::ENABLED);
    unsaid.then(|| (keys::ENABLED.to_owned(), Some("true".to_owned()))).into_iter().collect()
}

/// No label about GPUs, for a node that is proven to have none.
pub fn no_labels() -> Texts {
    OF_GPUS.into_iter().map(|key| (key.to_owned(), None)).collect()
}

/// `24Gi`: rounded to the nearest, since drivers keep some of a card's memory to themselves.
fn gibibytes(bytes: u64) -> String {
    format!("{}Gi", bytes.saturating_add(GIB / 2) / GIB)
}

fn vendor_name(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Nvidia => "NVIDIA",
        Vendor::Amd => "AMD",
        Vendor::Intel => "Intel",
        Vendor::Cpu => "CPU",
    }
}
