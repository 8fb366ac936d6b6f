//! APUs: GPUs beside the processor's cores, which work in the machine's memory.

/// The pools that the driver of an APU can allocate from, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pools {
    /// What the firmware carved out for the GPU (`mem_info_vram_total`). The kernel's `MemTotal` lacks it.
    pub carved_out: u64,
    /// What of the machine's memory the GPU may map (`mem_info_gtt_total`).
    pub mappable: u64,
    /// The limit of the kernel's memory manager (`ttm.pages_limit` times the page size), if one is set.
    pub mapping_limit: Option<u64>,
    /// The machine's memory (`MemTotal`), if known.
    pub machine: Option<u64>,
}

/// What one process can use: the larger of the carved-out part and the mappable one, the latter no more than
/// its limit and the machine. Never their sum: the driver takes all of an allocation from one of them, and
/// where the mappable part is the larger it takes that one.
pub fn usable(pools: Pools) -> u64 {
    let caps = [pools.mapping_limit, pools.machine];
    let mappable = caps.into_iter().flatten().fold(pools.mappable, u64::min);
    pools.carved_out.max(mappable)
}

/// The processors that LLVM's AMDGPU guide lists as APUs (its table "AMDGPU Processors").
const APUS: [&str; 13] = [
    "gfx902", "gfx909", "gfx90c", "gfx1013", "gfx1033", "gfx1035", "gfx1036", "gfx1037", "gfx1103",
    "gfx1150", "gfx1151", "gfx1152", "gfx1153",
];

/// The architecture is one of APUs.
pub fn has_no_memory_of_its_own(architecture: &str) -> bool {
    APUS.contains(&architecture)
}
