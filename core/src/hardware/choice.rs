//! What stands for all GPUs of a node on its labels. The same GPUs give the same answer in any order, so
//! that placement does not flap on mixed nodes.

use std::cmp::Reverse;

use super::Gpu;
use crate::backends::Vendor;

/// The values for a node's labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Representative {
    /// The maker of the GPUs that are spoken of. On a node of two makers, the one with the most memory.
    pub vendor: Vendor,
    /// The newest architecture among them.
    pub architecture: Option<String>,
    /// The largest memory of one device, in bytes.
    pub vram: Option<u64>,
    /// The devices that they offer.
    pub count: usize,
    /// What the one with the newest architecture and the most memory is sold as.
    pub product: Option<String>,
}

impl Representative {
    /// The architecture computes in four-bit integers.
    pub fn int4(&self) -> Option<bool> {
        self.architecture.as_deref().map(computes_in_int4)
    }
}

/// The GPUs of a node that its labels and annotations speak of: those of one maker, and none of those that
/// take the machine's memory beside one that has its own, as the graphics inside a processor do.
pub fn spoken_for(gpus: &[Gpu]) -> Vec<&Gpu> {
    let vendors = [Vendor::Nvidia, Vendor::Amd, Vendor::Intel];
    let of = |vendor: Vendor, unified: bool| {
        gpus.iter().filter(move |gpu| gpu.vendor == vendor && gpu.unified == unified)
    };
    let kinds =
        [false, true].into_iter().flat_map(|unified| vendors.map(|vendor| (vendor, unified)));
    let present = kinds.filter(|(vendor, unified)| of(*vendor, *unified).next().is_some());
    let best = present.min_by_key(|&(vendor, unified)| {
        let memory: u64 = of(vendor, unified).filter_map(|gpu| gpu.memory.total).sum();
        (unified, Reverse((memory, of(vendor, unified).count())))
    });
    best.map(|(vendor, unified)| of(vendor, unified).collect()).unwrap_or_default()
}

/// What stands for the GPUs that are [`spoken_for`]; `None` if there are none.
pub fn representative(spoken_for: &[&Gpu]) -> Option<Representative> {
    let vendor = spoken_for.first()?.vendor;
    let architectures = spoken_for.iter().filter_map(|gpu| gpu.architecture.clone());
    let devices: Vec<_> = spoken_for.iter().flat_map(|gpu| gpu.offered()).collect();
    Some(Representative {
        vendor,
        architecture: architectures.max_by_key(|name| (generation(name), name.clone())),
        vram: devices.iter().filter_map(|memory| memory.total).max(),
        count: devices.len(),
        product: product(spoken_for),
    })
}

/// Equals are told apart by their names, so that the order does not matter.
fn product(gpus: &[&Gpu]) -> Option<String> {
    let named = gpus.iter().filter_map(|gpu| {
        let name = gpu.name.as_deref().map(str::trim).filter(|name| !name.is_empty())?;
        let age = gpu.architecture.as_deref().map(generation);
        Some((age, gpu.memory.total, name))
    });
    named.max().map(|(_, _, name)| name.to_owned())
}

/// How new an architecture is: generation, then what comes after it. `sm_100` is after `sm_90`, `gfx1100`
/// after `gfx90a`.
fn generation(architecture: &str) -> (u32, u32) {
    if let Some(number) = architecture.strip_prefix("sm_") {
        return (number.parse().unwrap_or_default(), 0);
    }
    let digits = architecture.strip_prefix("gfx").unwrap_or_default();
    // The last two digits are the minor version and the stepping, in hexadecimal.
    let (major, minor) =
        digits.split_at_checked(digits.len().saturating_sub(2)).unwrap_or_default();
    (major.parse().unwrap_or_default(), u32::from_str_radix(minor, 16).unwrap_or_default())
}

/// NVIDIA's tensor cores take four-bit integers from Turing on (CUDA's guide, "Warp matrix functions");
/// AMD's processors with `V_DOT8` instructions do (LLVM's AMDGPU guide, the `dot` features).
fn computes_in_int4(architecture: &str) -> bool {
    let (major, minor) = generation(architecture);
    if architecture.starts_with("sm_") {
        return major >= 75;
    }
    match major {
        9 => minor == 0x06 || minor == 0x08 || (minor >= 0x0a && minor != 0x0c),
        10 => minor >= 0x11 && minor != 0x13,
        _ => major >= 11,
    }
}
