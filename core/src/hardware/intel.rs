//! Intel: its discrete GPUs as sysfs shows them. The kernel tells neither their memory nor their
//! architecture there, so both stay unknown.

use super::sysfs::{Card, Tree};
use super::{Gpu, Survey};
use crate::backends::Vendor;

/// PCI's number of Intel.
pub(super) const PCI_VENDOR: &str = "0x8086";

/// Whether the GPU at this PCI address is the one inside the processor, which is always on bus 0. No model is served
/// by it.
pub(super) fn is_inside_the_processor(address: &str) -> bool {
    address.starts_with("0000:00:")
}

/// The discrete GPUs.
pub fn read(tree: &Tree) -> Survey {
    let cards = tree.cards().filter(|card| card.vendor() == Some(PCI_VENDOR));
    let discrete = cards.filter_map(|card| discrete(&card));
    Survey { gpus: discrete.collect(), findings: Vec::new() }
}

fn discrete(card: &Card<'_>) -> Option<Gpu> {
    let address = card.pci_address().filter(|address| !is_inside_the_processor(address))?;
    let mut gpu = Gpu::new(Vendor::Intel, address);
    gpu.temperature = card.temperature();
    Some(gpu)
}
