//! One GPU, and everything that one look at a node found.

use std::fmt;

use crate::backends::Vendor;

/// Memory in bytes, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// All of it.
    pub total: Option<u64>,
    /// What is in use.
    pub used: Option<u64>,
}

impl Memory {
    /// What is free, where both numbers are known; a used part beyond the whole leaves nothing.
    pub fn free(self) -> Option<u64> {
        Some(self.total?.saturating_sub(self.used?))
    }
}

/// A part of a GPU that is given out as a device of its own (a MIG instance).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    /// What the driver calls it, such as `MIG-a5d5…`.
    pub id: String,
    /// The profile by the driver's own name, such as `3g.20gb` or `1g.18gb+me`; never derived from sizes.
    pub profile: Option<String>,
    /// Its share of the memory.
    pub memory: Memory,
}

/// Whether a GPU is given out whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Partitioning {
    /// The GPU is one device.
    #[default]
    Whole,
    /// Only its partitions are devices; none of them means that the GPU offers nothing.
    Partitioned(Vec<Partition>),
}

/// One GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Gpu {
    /// Who made it.
    pub vendor: Vendor,
    /// What tells it from the node's other GPUs for as long as it is there: a UUID, else a PCI address, else
    /// an index.
    pub id: String,
    /// What it is sold as.
    pub name: Option<String>,
    /// `sm_89`, `gfx1100`.
    pub architecture: Option<String>,
    /// Its memory. Of a GPU without memory of its own, what it may take of the machine's.
    pub memory: Memory,
    /// Percent of the last sampling period in which it worked.
    pub utilization: Option<f64>,
    /// Degrees Celsius.
    pub temperature: Option<f64>,
    /// It takes the machine's memory (GB10, Jetson, an APU).
    pub unified: bool,
    /// How it is given out.
    pub partitioning: Partitioning,
}

impl Gpu {
    /// A GPU of which nothing is known but that it is there.
    pub fn new(vendor: Vendor, id: impl Into<String>) -> Self {
        Self {
            vendor,
            id: id.into(),
            name: None,
            architecture: None,
            memory: Memory::default(),
            utilization: None,
            temperature: None,
            unified: false,
            partitioning: Partitioning::Whole,
        }
    }

    /// The memory of each device that the GPU offers: its own if it is whole, else each partition's.
    pub fn offered(&self) -> Vec<Memory> {
        match &self.partitioning {
            Partitioning::Whole => vec![self.memory],
            Partitioning::Partitioned(parts) => parts.iter().map(|part| part.memory).collect(),
        }
    }
}

/// Something about a GPU that an operator has to know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// The GPU was there and does not answer any more.
    Lost {
        /// The GPU's id, or where it was.
        gpu: String,
    },
    /// MIG is on and no partition was made, so the GPU offers nothing.
    WithoutPartitions {
        /// The GPU's id.
        gpu: String,
    },
    /// A GPU is on the bus, and nothing that could tell more about it is in reach.
    OutOfReach {
        /// Who made it.
        vendor: Vendor,
    },
    /// MIG was switched and takes effect at the next reset.
    PartitioningPending {
        /// The GPU's id.
        gpu: String,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { gpu } => {
                write!(out, "GPU {gpu} does not answer; reset it or restart the node")
            }
            Self::WithoutPartitions { gpu } => {
                write!(out, "GPU {gpu} has MIG on and no instances; make some or turn MIG off")
            }
            Self::OutOfReach { vendor: Vendor::Amd } => {
                write!(
                    out,
                    "an AMD GPU is on the bus, and neither its driver (amdgpu) nor amd-smi nor rocm-smi tells of it; \
                     install the driver, and give the agent the host's root (docs/agent.md)"
                )
            }
            Self::OutOfReach { .. } => {
                write!(
                    out,
                    "an NVIDIA GPU is on the bus, and neither NVML nor nvidia-smi is in reach; install the driver, give \
                     the agent the host's root, or set agent.runtimeClassName (docs/agent.md)"
                )
            }
            Self::PartitioningPending { gpu } => {
                write!(
                    out,
                    "the MIG mode of GPU {gpu} was changed; reset the GPU for it to take effect"
                )
            }
        }
    }
}

/// What one look at a node found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Survey {
    /// Its GPUs, in the source's order.
    pub gpus: Vec<Gpu>,
    /// What is wrong with them.
    pub findings: Vec<Finding>,
}

impl Survey {
    /// Adds what another source found.
    pub fn add(&mut self, other: Self) {
        self.gpus.extend(other.gpus);
        self.findings.extend(other.findings);
    }
}
