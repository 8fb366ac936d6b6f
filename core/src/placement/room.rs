//! How much GPU memory of a node is free for one pod more.

use super::{Node, Reservation};

/// The free memory of a node in MiB, without what pods were promised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Room {
    /// The node does not say.
    Unknown,
    /// Over all devices together.
    Sum(u64),
    /// Of each device, the freest first.
    Each(Vec<u64>),
}

impl Room {
    /// What `node` has free beside `reservations`, which are those of all its pods.
    pub fn of(node: &Node, reservations: &[Reservation]) -> Self {
        let missing = reservations.iter().filter(|one| one.is_missing_from(node));
        if let Some(each) = node.free_each.known() {
            let mut each = each.clone();
            each.sort_unstable_by(|a, b| b.cmp(a));
            missing.for_each(|reservation| take_from(&mut each, reservation));
            return Self::Each(each);
        }
        let Some(sum) = node.free.known() else { return Self::Unknown };
        let taken = missing.map(|reservation| {
            let of_each = reservation.memory.or(node.vram.known().copied()).unwrap_or(u64::MAX);
            of_each.saturating_mul(reservation.gpus)
        });
        Self::Sum(taken.fold(*sum, u64::saturating_sub))
    }

    /// How much is free for a pod with so many `gpus`, over all of them; `None` if it is not known.
    pub fn free(&self, gpus: u64) -> Option<u64> {
        match self {
            Self::Unknown => None,
            Self::Sum(sum) => Some(*sum),
            Self::Each(each) => Some(each.iter().take(within(gpus, each)).sum()),
        }
    }

    /// Whether a pod that needs `memory` on each of so many `gpus` has room here; also if nobody knows.
    pub fn holds(&self, memory: u64, gpus: u64) -> bool {
        match self {
            Self::Unknown => true,
            Self::Sum(sum) => *sum >= memory.saturating_mul(gpus),
            // The pod's devices may be the fullest of those that are enough.
            Self::Each(each) => each.iter().filter(|free| **free >= memory).count() as u64 >= gpus,
        }
    }

    /// The share of a node's memory that is free for a pod with so many `gpus`, 0 to 1; 0 if it is not known.
    pub(super) fn share(&self, node: &Node, gpus: u64) -> f64 {
        let devices = match self {
            Self::Unknown => return 0.0,
            Self::Sum(_) => node.count.known().copied().unwrap_or(1),
            Self::Each(each) => within(gpus, each) as u64,
        };
        let total = node.vram.known().copied().unwrap_or_default().saturating_mul(devices);
        if total == 0 {
            return 0.0;
        }
        let free = self.free(gpus).unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "a share needs no more than 52 bits")]
        let share = free as f64 / total as f64;
        share.clamp(0.0, 1.0)
    }
}

/// Which devices a pod will be given is not known: the freest, which is the worst for who comes next.
fn take_from(each: &mut [u64], reservation: &Reservation) {
    let gpus = within(reservation.gpus, each);
    for free in each.iter_mut().take(gpus) {
        *free = reservation.memory.map_or(0, |memory| free.saturating_sub(memory));
    }
    each.sort_unstable_by(|a, b| b.cmp(a));
}

fn within(gpus: u64, each: &[u64]) -> usize {
    usize::try_from(gpus).unwrap_or(usize::MAX).min(each.len())
}
