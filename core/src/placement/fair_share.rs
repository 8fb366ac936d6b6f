//! Who has had much gives way to who has had little: above its budget a tenant is moved away from the nodes
//! that everybody wants, below it towards them.
//!
//! The original added one number to all nodes of a request, which moves no ranking. Here the number counts
//! by how sought after a node is among those of the request.

/// How tenants share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FairShare {
    /// How much it counts, beside the other weights.
    pub weight: f64,
    /// The GPUs that a tenant may have without giving way.
    pub budget: f64,
}

/// The tenant of one pod.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tenant {
    /// The GPUs of its pods that have a node, by its budget; the pod itself counted in.
    pub ratio: f64,
    /// What the most sought-after node of a request is worth to it; below zero it is to be avoided.
    pub adjustment: f64,
}

impl FairShare {
    /// A tenant that has `used` GPUs, and asks for `gpus` more.
    pub fn tenant(&self, used: u64, gpus: u64) -> Tenant {
        #[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 GPUs")]
        let used = used.saturating_add(gpus) as f64;
        let ratio = if self.budget > 0.0 { used / self.budget } else { 1.0 };
        Tenant { ratio, adjustment: (1.0 - ratio) * self.weight }
    }
}

/// How sought after each of some nodes is, 0 to 1: by speed, and where they are all equally fast (or nobody
/// has measured it) by the memory of one device.
pub(super) fn sought_after(speeds: &[f64], memory: &[u64]) -> Vec<f64> {
    let by_speed = between(speeds);
    if by_speed.iter().any(|place| *place > 0.0) {
        return by_speed;
    }
    #[expect(clippy::cast_precision_loss, reason = "a place needs no more than 52 bits")]
    let memory: Vec<f64> = memory.iter().map(|memory| *memory as f64).collect();
    between(&memory)
}

/// Where each number lies between the smallest (0) and the largest (1); 0 if all are equal.
fn between(numbers: &[f64]) -> Vec<f64> {
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let width = most - least;
    let place = |number: &f64| if width > 0.0 { (number - least) / width } else { 0.0 };
    numbers.iter().map(place).collect()
}
