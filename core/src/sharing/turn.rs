//! When a member that waits can get its turn at the earliest, so that hopeless requests are told
//! at once instead of at their deadline.

use std::time::Duration;

use super::claim::protected_until;
use super::{Election, Member, Residency, cooldown};
use crate::ids::ModelId;
use crate::moment::Moment;
use crate::scaling::{Warmth, quiet_since};

/// The earliest turn of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is elected, or could be at any moment.
    Now,
    /// Not before this moment, whatever anybody does.
    NotBefore(Moment),
    /// Never while this one is there: it has the higher claim and does not leave by itself.
    HeldBy(ModelId),
}

/// The earliest turn of the member `id` of a group whose `election` came out like this.
///
/// A lower bound: a request is never called hopeless that could have been served.
pub fn turn(
    members: &[Member],
    election: &Election,
    id: &ModelId,
    expected_load: impl Fn(&ModelId) -> Option<(Moment, Duration)>,
    now: Moment,
) -> Turn {
    let Some(member) = members.iter().find(|member| member.id == *id) else { return Turn::Now };
    if let Some(until) = member.barred_until.filter(|until| now < *until) {
        return Turn::NotBefore(until);
    }
    if election.wants(id) {
        return Turn::Now;
    }
    let cooldown = cooldown(members);
    let mut earliest: Option<Moment> = None;
    let mut holder: Option<&ModelId> = None;
    for blocker in members.iter().filter(|other| election.wants(&other.id)) {
        match leaves_at(blocker, member, cooldown, &expected_load, now) {
            Some(at) => earliest = Some(earliest.map_or(at, |known| known.min(at))),
            None => holder = holder.or(Some(&blocker.id)),
        }
    }
    match (earliest, holder) {
        (Some(at), _) if at > now => Turn::NotBefore(at),
        (None, Some(holder)) => Turn::HeldBy(holder.clone()),
        _ => Turn::Now,
    }
}

/// The earliest moment at which `blocker` makes room for a waiting `member`; `None` is never.
fn leaves_at(
    blocker: &Member,
    member: &Member,
    cooldown: Duration,
    expected_load: &impl Fn(&ModelId) -> Option<(Moment, Duration)>,
    now: Moment,
) -> Option<Moment> {
    if blocker.force_promotion && !member.force_promotion {
        return None;
    }
    let outranked = blocker.priority > member.priority;
    if outranked && blocker.warmth != Warmth::None {
        return None;
    }
    match blocker.residency {
        Residency::Absent => Some(now),
        Residency::Loading => {
            let ready =
                expected_load(&blocker.id).map_or(now, |(since, took)| (since + took).max(now));
            Some(if outranked { ready + blocker.idle_timeout } else { ready })
        }
        Residency::Serving { since, load_took, .. } if !outranked => {
            // A busy one may become idle at any moment; then only its load time protects it.
            let idle_protection = since + load_took.min(cooldown);
            let protection = if blocker.activity.idle() {
                protected_until(blocker, cooldown).unwrap_or(idle_protection)
            } else {
                idle_protection
            };
            Some(protection.max(now))
        }
        Residency::Serving { since, .. } => {
            let quiet =
                if blocker.activity.idle() { quiet_since(&blocker.activity, since) } else { now };
            Some((quiet + blocker.idle_timeout).max(now))
        }
    }
}
