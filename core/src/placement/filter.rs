//! Whether a node can hold a pod, and why not.

use flexinfer_crds::keys;

use super::said::Said;
use super::{Node, Pod, Reservation, Room};
use crate::backends::{Support, Vendor};

/// Why a node cannot hold a pod. The text is what `kubectl describe pod` shows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Refusal {
    /// The node has not been seen yet.
    #[error("the extender has not seen this node yet")]
    UnknownNode,
    /// The pod says something of itself that cannot be read.
    #[error("the pod's annotation {key} cannot be read; write a number", key = keys::VRAM_ESTIMATE)]
    UnreadablePod,
    /// The node is about to be taken away.
    #[error("the node is about to be taken away")]
    Leaving,
    /// The node has no label that says whose GPUs it has.
    #[error("no label {key}: is the agent running?", key = keys::GPU_VENDOR)]
    NoVendor,
    /// Something that the node says cannot be read.
    #[error("{key} of the node cannot be read; remove it, and its agent writes it anew")]
    Unreadable {
        /// The label or annotation.
        key: &'static str,
    },
    /// The agent says that nothing new should run here.
    #[error("its GPUs are {health}")]
    OutOfOrder {
        /// What the agent says.
        health: String,
    },
    /// Its GPUs are another maker's.
    #[error("its GPUs are {found}, not {wanted}")]
    OtherVendor {
        /// Whose GPUs the pod asks for.
        wanted: Vendor,
        /// Whose GPUs the node has.
        found: Vendor,
    },
    /// It has fewer devices than the pod asks for.
    #[error("too few GPUs: have {have}, need {need}")]
    TooFewGpus {
        /// Devices of the node.
        have: u64,
        /// Devices that the pod asks for.
        need: u64,
    },
    /// The engine does not run on its architecture.
    #[error("{backend} does not run on {architecture}")]
    UnsupportedArchitecture {
        /// The engine.
        backend: String,
        /// The node's architecture.
        architecture: String,
    },
    /// Its GPUs cannot compute in the format of the weights.
    #[error("{format} weights need GPUs that compute in {need}")]
    UnsupportedFormat {
        /// The format.
        format: String,
        /// What the GPUs lack.
        need: &'static str,
    },
    /// One of its devices is too small, even if nothing else were on it.
    #[error("GPUs too small: have {have} MB, need {need} MB on each")]
    TooSmall {
        /// Memory of one device, in MiB.
        have: u64,
        /// Memory that the pod needs on each, in MiB.
        need: u64,
    },
    /// Too much is in use or promised.
    #[error("insufficient VRAM: have {have} MB free, need {need} MB")]
    NotEnoughFree {
        /// Free memory over the devices that the pod would get, in MiB.
        have: u64,
        /// Memory that it needs over all of them, in MiB.
        need: u64,
    },
}

impl Refusal {
    /// Whether it could change if other pods left the node.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::NotEnoughFree { .. } | Self::UnknownNode)
    }
}

/// Why `node` cannot hold `pod` beside `reservations`, which are those of all pods on it; `None` if it can.
pub fn refusal(pod: &Pod, node: &Node, reservations: &[Reservation]) -> Option<Refusal> {
    if pod.gpus == 0 {
        return None;
    }
    unfit_now(pod, node).or_else(|| unfit_ever(pod, node)).or_else(|| full(pod, node, reservations))
}

/// What is wrong with the node, whatever the pod.
fn unfit_now(pod: &Pod, node: &Node) -> Option<Refusal> {
    if pod.memory.is_garbage() {
        return Some(Refusal::UnreadablePod);
    }
    if node.leaving {
        return Some(Refusal::Leaving);
    }
    if node.vendor == Said::Nothing {
        return Some(Refusal::NoVendor);
    }
    if let Some(key) = node.garbage() {
        return Some(Refusal::Unreadable { key });
    }
    node.out_of_order.as_ref().map(|health| Refusal::OutOfOrder { health: health.clone() })
}

/// What no other pod's leaving would change.
fn unfit_ever(pod: &Pod, node: &Node) -> Option<Refusal> {
    if let (Some(wanted), Some(found)) = (pod.vendor, node.vendor.known())
        && wanted != *found
    {
        return Some(Refusal::OtherVendor { wanted, found: *found });
    }
    let need = pod.gpus;
    if let Some(have) = node.count.known().copied().filter(|have| *have < need) {
        return Some(Refusal::TooFewGpus { have, need });
    }
    if let (Some(backend), Some(architecture)) = (pod.backend, node.architecture.as_ref())
        && backend.support(architecture) == Support::None
    {
        let (backend, architecture) = (backend.to_string(), architecture.clone());
        return Some(Refusal::UnsupportedArchitecture { backend, architecture });
    }
    if let Some((format, need)) = lacking(pod, node) {
        return Some(Refusal::UnsupportedFormat { format: format.to_owned(), need });
    }
    let need = *pod.memory.known()?;
    let have = node.vram.known().copied().filter(|have| *have < need)?;
    Some(Refusal::TooSmall { have, need })
}

/// What the node's GPUs lack to compute in the format of the pod's weights, where both are known.
fn lacking<'a>(pod: &'a Pod, node: &Node) -> Option<(&'a str, &'static str)> {
    let format = pod.format.as_deref()?;
    let int4 = ["awq", "gptq"].iter().any(|name| format.eq_ignore_ascii_case(name));
    (int4 && node.int4 == Said::Known(false)).then_some((format, "four-bit integers"))
}

fn full(pod: &Pod, node: &Node, reservations: &[Reservation]) -> Option<Refusal> {
    let memory = pod.memory.known().copied().filter(|memory| *memory > 0)?;
    let room = Room::of(node, reservations);
    if room.holds(memory, pod.gpus) {
        return None;
    }
    let have = room.free(pod.gpus).unwrap_or_default();
    Some(Refusal::NotEnoughFree { have, need: memory.saturating_mul(pod.gpus) })
}
