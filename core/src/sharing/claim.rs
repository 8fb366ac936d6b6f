//! One member's claim to be resident, and how two claims compare.

use std::cmp::Ordering;
use std::cmp::Reverse;
use std::time::Duration;

use super::{DEMAND_WINDOW, Member, Residency};
use crate::ids::ModelId;
use crate::moment::Moment;
use crate::scaling::{Warmth, quiet_since, sleeps_at};

/// The kinds of claim, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// An idle resident that the warm primary may displace.
    Lingering,
    /// Pinned warm.
    Pinned,
    /// The warm primary.
    Primary,
    /// Demand, or a resident that has not been idle for its whole timeout.
    Contested,
    /// A load that has begun, or a resident under anti-thrashing protection.
    Protected,
    /// `gpu.forcePromotion`.
    Forced,
}

/// Within contested claims of the same priority, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stance {
    /// Resident with nothing to do.
    Idle,
    /// Somebody waits for it, resident or not, and nothing is in flight.
    Demanded,
    /// Resident with requests in flight: an equal never cuts it off.
    Serving,
}

/// A claim to be resident.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim<'a> {
    pub(super) member: &'a Member,
    pub(super) kind: Kind,
    stance: Stance,
}

/// The claim that `member` has `now`; `None` if it should not be resident.
pub(super) fn claim<'a>(
    member: &'a Member,
    members: &[Member],
    cooldown: Duration,
    now: Moment,
) -> Option<Claim<'a>> {
    if member.barred(now) {
        return None;
    }
    let kind = kind(member, members, cooldown, now)?;
    Some(Claim { member, kind, stance: stance(member) })
}

fn kind(member: &Member, members: &[Member], cooldown: Duration, now: Moment) -> Option<Kind> {
    if member.force_promotion {
        return Some(Kind::Forced);
    }
    match member.residency {
        Residency::Loading => Some(Kind::Protected),
        Residency::Serving { since, .. } => {
            if protected_until(member, cooldown).is_some_and(|until| now < until) {
                return Some(Kind::Protected);
            }
            let quiet = now.since(quiet_since(&member.activity, since));
            let idle = member.activity.idle();
            // A warm resident does not sleep: it keeps its place against all of lower priority.
            let stays = !idle || quiet < member.idle_timeout || member.warmth != Warmth::None;
            if !stays {
                return None;
            }
            let displaceable = idle && quiet >= DEMAND_WINDOW;
            let lingers = displaceable && a_warmer_wants_in(members, member, now);
            // One that is pinned has the claim that it would come back with: no weaker than that of another like it.
            Some(if lingers { warm(member).unwrap_or(Kind::Lingering) } else { Kind::Contested })
        }
        Residency::Absent if member.demanded() => Some(Kind::Contested),
        Residency::Absent => warm(member),
    }
}

fn warm(member: &Member) -> Option<Kind> {
    match member.warmth {
        Warmth::None => None,
        Warmth::Pinned => Some(Kind::Pinned),
        Warmth::Primary => Some(Kind::Primary),
    }
}

fn stance(member: &Member) -> Stance {
    if member.resident() && member.activity.in_flight > 0 {
        Stance::Serving
    } else if member.demanded() {
        Stance::Demanded
    } else {
        Stance::Idle
    }
}

/// Whether somebody has the better reason to be up while nobody asks for anything: the primary before
/// a visitor or a pinned member of at most its priority, and of two members with the same reason the
/// one of higher priority. Also where it is up beside `resident`: one that has to go to make room must
/// not come back in the other's place.
fn a_warmer_wants_in(members: &[Member], resident: &Member, now: Moment) -> bool {
    members.iter().filter(|other| !other.barred(now)).any(|other| is_warmer(other, resident))
}

/// Whether `other` has the better reason to be up than `resident` while nobody asks for anything.
pub(super) fn is_warmer(other: &Member, resident: &Member) -> bool {
    let reason = (other.warmth, other.priority) > (resident.warmth, resident.priority);
    match other.warmth {
        Warmth::None => false,
        Warmth::Pinned => resident.warmth == Warmth::Pinned && reason,
        Warmth::Primary => reason && other.priority >= resident.priority,
    }
}

/// Until when anti-thrashing protects a serving member. A swap's winner that has work is protected
/// for the cooldown; an idle one only for as long as its load took, so that a lone user can change
/// models.
pub(super) fn protected_until(member: &Member, cooldown: Duration) -> Option<Moment> {
    if member.activity.idle() {
        return protected_at_rest_until(member, cooldown);
    }
    match member.residency {
        Residency::Serving { swapped_in, .. } => swapped_in.map(|swap| swap + cooldown),
        _ => None,
    }
}

/// Until when anti-thrashing protects a serving member once it has nothing to do.
pub(super) fn protected_at_rest_until(member: &Member, cooldown: Duration) -> Option<Moment> {
    match member.residency {
        Residency::Serving { since, load_took, .. } => Some(since + load_took.min(cooldown)),
        _ => None,
    }
}

/// Moments at which this member's claim changes by itself.
pub(super) fn turning_points(
    member: &Member,
    cooldown: Duration,
) -> impl Iterator<Item = Moment> + use<> {
    let serving = match member.residency {
        Residency::Serving { since, .. } => Some(since),
        _ => None,
    };
    let sleep = serving.and_then(|since| sleeps_at(member.rest(), &member.activity, since));
    // A warm member does not sleep, but its claim weakens at the same distance.
    let weaken = serving
        .filter(|_| member.activity.idle())
        .map(|since| quiet_since(&member.activity, since));
    let idle_end = weaken.map(|quiet| quiet + member.idle_timeout);
    let window = weaken.map(|quiet| quiet + DEMAND_WINDOW);
    [protected_until(member, cooldown), sleep, idle_end, window, member.barred_until]
        .into_iter()
        .flatten()
}

impl Claim<'_> {
    /// Orders the stronger claim first. Total: the name decides last.
    pub(super) fn stronger_first(&self, other: &Self) -> Ordering {
        let key = |claim: &Self| {
            (
                Reverse(claim.kind),
                Reverse(claim.member.priority),
                Reverse(claim.stance),
                // Among the demanded who waited longest, else who was active last.
                claim.member.activity.waiting_since.unwrap_or(Moment::ORIGIN),
                // Of two who came at the same moment the one that is there: nothing has to be loaded.
                Reverse(claim.member.resident()),
                Reverse(claim.member.activity.last_active),
            )
        };
        key(self).cmp(&key(other)).then_with(|| self.member.id.cmp(&other.member.id))
    }

    /// Whether this resident shall take nothing new so that a waiting member of equal priority
    /// gets its turn once what is in flight is done.
    pub(super) fn yields_to_a_waiting_equal(
        &self,
        members: &[Member],
        residents: &[ModelId],
        now: Moment,
    ) -> bool {
        if self.kind != Kind::Contested || self.stance != Stance::Serving {
            return false;
        }
        let own = self.member.activity.waiting_since;
        members.iter().any(|other| {
            !residents.contains(&other.id)
                && !other.resident()
                && !other.barred(now)
                && other.priority == self.member.priority
                && other
                    .activity
                    .waiting_since
                    .is_some_and(|theirs| own.is_none_or(|own| theirs <= own))
        })
    }
}
