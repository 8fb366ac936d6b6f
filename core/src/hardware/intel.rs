//! Intel: its discrete GPUs as sysfs shows them. The kernel tells neither their memory nor their
//! architecture there, so both stay unknown.

use super::sysfs::{Card, Tree};
use super::{Gpu, Survey};
use crate::backends::Vendor;

/// PCI's number of Intel.
pub(super) const PCI_VENDOR: &str = "0x8086";

/// The discrete GPUs. The one inside the processor is always on bus 0, and no model is served by it.
pub fn read(tree: &Tree) -> Survey {
    let cards = tree.cards().filter(|card| card.vendor() == Some(PCI_VENDOR));
    let discrete = cards.filter_map(|card| discrete(&card));
    Survey { gpus: discrete.collect(), findings: Vec::new() }
}

fn discrete(card: &Card<'_>) -> Option<Gpu> {
    let address = card.pci_address().filter(|address| !address.starts_with("0000:00:"))?;
    let mut gpu = Gpu::new(Vendor::Intel, address);
    gpu.temperature = card.temperature();
    Some(gpu)
}
