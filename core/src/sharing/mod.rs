//! Who holds a shared GPU: the election of a group, decided afresh from the whole state after
//! every event.
//!
//! The order (design §6, and "Shared-group leadership" of the configuration page):
//!
//! 1. a member with `gpu.forcePromotion`;
//! 2. a resident that anti-thrashing protects, and a load that has begun;
//! 3. demand and residents, by priority: a strictly higher demand displaces even a busy resident,
//!    an equal one an idle resident, a lower one nobody;
//! 4. the member with `gpu.warmPolicy: primary`;
//! 5. members pinned by `serverless.minReplicas`;
//! 6. an idle resident that one of these may displace, where there is room.
//!
//! Nothing here may depend on what an earlier election said: a swap under way is joined because
//! the same state gives the same answer.

mod claim;
mod packing;
mod turn;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use packing::room;
pub use turn::{Turn, turn};

use crate::ids::ModelId;
use crate::moment::Moment;
use crate::scaling::{Activity, Rest, Warmth};

/// How long an idle resident keeps its place against the warm primary after its last request.
pub const DEMAND_WINDOW: Duration = Duration::from_secs(120);

/// What fits into a group at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// One resident, whatever its size: the default.
    One,
    /// As many residents as fit by their estimates, in MiB. A member without an estimate, or with
    /// one beyond the whole, is taken alone.
    Vram(u64),
}

/// Where a member's engine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residency {
    /// It has none, or one that is being stopped.
    Absent,
    /// It was started and is not ready.
    Loading,
    /// It serves.
    Serving {
        /// When it became ready.
        since: Moment,
        /// How long its load took.
        load_took: Duration,
        /// When the swap that brought it in was decided; `None` if it displaced nobody.
        swapped_in: Option<Moment>,
    },
}

/// What the election looks at for one member.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Which model.
    pub id: ModelId,
    /// `gpu.priority`.
    pub priority: i32,
    /// `gpu.forcePromotion`.
    pub force_promotion: bool,
    /// Whether and why it stays up without requests.
    pub warmth: Warmth,
    /// When an idle engine goes to sleep.
    pub idle_timeout: Duration,
    /// `gpu.swapCooldown`; the group uses its largest.
    pub swap_cooldown: Duration,
    /// `gpu.vramEstimateMB`.
    pub vram_mib: Option<u64>,
    /// It failed and is not tried again before this moment.
    pub barred_until: Option<Moment>,
    /// Where its engine is.
    pub residency: Residency,
    /// What it has to do.
    pub activity: Activity,
}

impl Member {
    fn barred(&self, now: Moment) -> bool {
        self.barred_until.is_some_and(|until| now < until)
    }

    fn resident(&self) -> bool {
        self.residency != Residency::Absent
    }

    fn demanded(&self) -> bool {
        self.activity.waiting > 0
    }

    fn rest(&self) -> Rest {
        Rest { idle_timeout: self.idle_timeout, warmth: self.warmth }
    }
}

/// The outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Election {
    /// Who should be resident, strongest claim first.
    pub residents: Vec<ModelId>,
    /// Residents that finish what they serve and take nothing new, because a member of equal
    /// priority waits. They are never cut off.
    pub yielding: Vec<ModelId>,
}

impl Election {
    /// Whether `id` should be resident.
    pub fn wants(&self, id: &ModelId) -> bool {
        self.residents.contains(id)
    }
}

/// Decides who should be resident in a group whose `members` are in this state `now`.
pub fn elect(members: &[Member], capacity: Capacity, now: Moment) -> Election {
    let cooldown = cooldown(members);
    let mut claims: Vec<claim::Claim<'_>> =
        members.iter().filter_map(|member| claim::claim(member, members, cooldown, now)).collect();
    claims.sort_by(claim::Claim::stronger_first);
    let residents = packing::pack(&claims, capacity);
    let yielding = claims
        .iter()
        .filter(|claim| residents.contains(&claim.member.id))
        .filter(|claim| claim.yields_to_a_waiting_equal(members, &residents, now))
        .map(|claim| claim.member.id.clone())
        .collect();
    Election { residents, yielding }
}

/// The group's cooldown: the largest of its members'.
fn cooldown(members: &[Member]) -> Duration {
    members.iter().map(|member| member.swap_cooldown).max().unwrap_or_default()
}

/// The next moment at which the election can come out differently although nothing happens.
pub fn revisit_at(members: &[Member], now: Moment) -> Option<Moment> {
    let cooldown = cooldown(members);
    members
        .iter()
        .flat_map(|member| claim::turning_points(member, cooldown))
        .filter(|moment| *moment > now)
        .min()
}
