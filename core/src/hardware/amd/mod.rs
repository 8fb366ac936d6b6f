//! AMD: what `amd-smi`, `rocm-smi` and `rocminfo` print, and which GPUs have no memory of their own.

mod amd_smi;
mod apu;
mod noise;
mod rocm_smi;
mod rocminfo;

#[cfg(test)]
mod tests;

pub use amd_smi::read as read_amd_smi;
pub use apu::{Pools, has_no_memory_of_its_own, usable};
pub use rocm_smi::read as read_rocm_smi;
pub use rocminfo::architectures;

use super::Gpu;

/// Gives GPUs of unknown architecture the one that `rocminfo` names at their place, if it names as many.
pub fn name_architectures(gpus: &mut [Gpu], architectures: &[String]) {
    if gpus.len() != architectures.len() {
        return;
    }
    for (gpu, architecture) in gpus.iter_mut().zip(architectures) {
        gpu.architecture.get_or_insert_with(|| architecture.clone());
    }
}

/// `gfx1100` of `gfx1100`, `GFX1100` or `gfx90a:sramecc+:xnack-`.
fn architecture(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let bare = text.split(':').next().unwrap_or_default();
    let digits = bare.strip_prefix("gfx")?;
    let fits = digits.len() >= 3 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    fits.then(|| bare.to_owned())
}
