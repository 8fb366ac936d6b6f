//! Memory of a node that a pod was promised and that its last measurement does not show yet (GPU-12).
//!
//! Nothing is remembered between two pods: what is promised follows from the pods that are there, so a
//! restart forgets nothing and a pod that is gone holds nothing.

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as api;

use super::said::Said;
use super::{Node, Pod};

/// What a pod takes of its node's GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// How many devices.
    pub gpus: u64,
    /// How much memory of each, in MiB; `None` if nobody knows, which is all of it.
    pub memory: Option<u64>,
    /// Since when it serves, its memory taken.
    pub ready_since: Option<Timestamp>,
}

impl Reservation {
    /// What `pod` takes, and of which node; `None` while it has no node, once it has ended, and if it asks
    /// for no GPU.
    pub fn of(pod: &api::Pod) -> Option<(String, Self)> {
        let node = pod.spec.as_ref()?.node_name.clone().filter(|name| !name.is_empty())?;
        let status = pod.status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref());
        if matches!(phase, Some("Succeeded" | "Failed")) {
            return None;
        }
        let asked = Pod::read(pod, None);
        let memory = match asked.memory {
            Said::Known(memory) if memory > 0 => Some(memory),
            _ => None,
        };
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let ready = conditions
            .and_then(|all| all.iter().find(|one| one.type_ == "Ready" && one.status == "True"));
        let ready_since = ready.and_then(|ready| Some(ready.last_transition_time.as_ref()?.0));
        (asked.gpus > 0).then_some((node, Self { gpus: asked.gpus, memory, ready_since }))
    }

    /// Whether what `node` says of its free memory leaves this out: it was measured before the pod was
    /// ready. Times are whole seconds, so the same second proves nothing. An agent that tells no time is
    /// believed about pods that are ready.
    pub(super) fn is_missing_from(&self, node: &Node) -> bool {
        match (self.ready_since, node.measured_at.known()) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(ready), Some(measured)) => ready >= *measured,
        }
    }
}
