//! The Jetson family, whose GPU is on no bus and is told by the device tree.

use crate::backends::Vendor;
use crate::hardware::sysfs::Tree;
use crate::hardware::{Gpu, Memory};

/// Systems on a chip by the device tree's name, and the compute capability of their GPUs.
const CHIPS: [(&str, &str); 4] = [
    ("nvidia,tegra264", "sm_110"),
    ("nvidia,tegra234", "sm_87"),
    ("nvidia,tegra194", "sm_72"),
    ("nvidia,tegra210", "sm_53"),
];

/// The GPU of a Jetson, which works in the memory of the `machine`.
pub fn jetson(tree: &Tree, machine: Memory) -> Option<Gpu> {
    let compatible = tree.compatible()?;
    let is = |chip: &str| compatible.split('\0').any(|name| name == chip);
    let (chip, architecture) = CHIPS.into_iter().find(|(chip, _)| is(chip))?;
    let mut gpu = Gpu::new(Vendor::Nvidia, chip);
    gpu.architecture = Some(architecture.to_owned());
    gpu.unified = true;
    gpu.memory = machine;
    Some(gpu)
}
