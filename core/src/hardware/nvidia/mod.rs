//! NVIDIA: what `nvidia-smi` prints, and what compute capabilities are called.

mod csv;
mod instances;
mod jetson;

#[cfg(test)]
mod tests;

pub use csv::{FIELDS, FIELDS_OLDER, read};
pub use instances::{InstanceSizes, Instances, attach};
pub use jetson::jetson;

use super::ProbeFailure;

/// The tool's name in failures.
pub const SMI: &str = "nvidia-smi";

/// `sm_89` of the compute capability `8.9`.
pub fn architecture(capability: &str) -> Option<String> {
    let (major, minor) = capability.trim().split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(major) && digits(minor)).then(|| format!("sm_{major}{minor}"))
}

/// The GPU lets its memory be read only as the machine's: GB10 (DGX Spark), and the Jetson family, whose
/// driver reports no memory of the GPU's own.
pub fn shares_the_machines_memory(name: &str) -> bool {
    let integrated = ["GB10", "Orin", "Xavier", "Thor", "Tegra", "NVIDIA Jetson"];
    integrated.iter().any(|part| name.contains(part))
}

/// Whether `said` is a failure of the driver, whatever the exit code was. The tool's own sentences.
pub fn complaint(said: &str) -> Option<ProbeFailure> {
    let signs = [
        "Failed to initialize NVML",
        "NVIDIA-SMI has failed",
        "Unknown Error",
        "No devices were found",
    ];
    let line = said.lines().find(|line| signs.iter().any(|sign| line.contains(sign)))?;
    Some(ProbeFailure::failed(SMI, line))
}
