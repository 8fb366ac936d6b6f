//! Which of the claims, strongest first, fit into a group together.

use super::claim::Claim;
use super::{Capacity, Member};
use crate::ids::ModelId;

/// Takes claims in order while they fit. A weaker claim that fits beside the stronger ones is
/// taken even where one between them did not fit: it takes nothing from it.
pub(super) fn pack(claims: &[Claim<'_>], capacity: Capacity) -> Vec<ModelId> {
    let mut taken: Vec<&Member> = Vec::new();
    for claim in claims {
        if fits(&taken, claim.member, capacity) {
            taken.push(claim.member);
        }
    }
    taken.into_iter().map(|member| member.id.clone()).collect()
}

/// Whether `member` fits beside those already `taken`.
pub(super) fn fits(taken: &[&Member], member: &Member, capacity: Capacity) -> bool {
    room(taken.iter().map(|taken| taken.vram_mib), member.vram_mib, capacity)
}

/// Whether something of size `wanted` fits beside what is `present`.
pub fn room(
    mut present: impl Iterator<Item = Option<u64>>,
    wanted: Option<u64>,
    capacity: Capacity,
) -> bool {
    let (Capacity::Vram(total), Some(wanted)) = (capacity, wanted) else {
        return present.next().is_none();
    };
    let mut used = 0_u64;
    let mut any = false;
    for size in present {
        let Some(size) = size else { return false };
        used = used.saturating_add(size);
        any = true;
    }
    !any || used.saturating_add(wanted) <= total
}
