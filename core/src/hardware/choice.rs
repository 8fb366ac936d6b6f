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
}

impl Representative {
    /// The architecture computes in four-bit integers.
    pub fn int4(&self) -> Option<bool> {
        self.architecture.as_deref().map(computes_in_int4)
    }
}

/// What stands for `gpus`; `None` if there are none.
pub fn representative(gpus: &[Gpu]) -> Option<Representative> {
    let vendors = [Vendor::Nvidia, Vendor::Amd, Vendor::Intel];
    let made_by = |vendor: Vendor| gpus.iter().filter(move |gpu| gpu.vendor == vendor);
    let present = vendors.into_iter().filter(|vendor| made_by(*vendor).next().is_some());
    let vendor = present.min_by_key(|vendor| {
        let memory: u64 = made_by(*vendor).filter_map(|gpu| gpu.memory.total).sum();
        Reverse((memory, made_by(*vendor).count()))
    })?;
    let architectures = made_by(vendor).filter_map(|gpu| gpu.architecture.clone());
    let devices: Vec<_> = made_by(vendor).flat_map(Gpu::offered).collect();
    Some(Representative {
        vendor,
        architecture: architectures.max_by_key(|name| (generation(name), name.clone())),
        vram: devices.iter().filter_map(|memory| memory.total).max(),
        count: devices.len(),
    })
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
