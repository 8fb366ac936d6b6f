//! When a member that waits can get its turn at the earliest, so that hopeless requests are told
//! at once instead of at their deadline.

use std::time::Duration;

use super::claim::{is_warmer, protected_at_rest_until, protected_until};
use super::{DEMAND_WINDOW, Election, Member, Residency, cooldown};
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
/// A lower bound: a request is never called hopeless that could have been served, unless somebody comes
/// later for a member that nobody waits for now.
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
    // One that is there and has to go may be let stay by whatever happens next.
    if election.wants(id) || member.resident() {
        return Turn::Now;
    }
    let mut earliest: Option<Moment> = None;
    let mut holder: Option<&ModelId> = None;
    // Another that wants in, or to stay, may make room too: it may leave soon, or be small enough to have
    // beside it.
    let displacing = |other: &&Member| {
        let wants_in = other.demanded() || other.force_promotion || other.resident();
        other.id == *id || (wants_in && !election.wants(&other.id))
    };
    for blocker in members.iter().filter(|other| election.wants(&other.id)) {
        let leaves = members.iter().filter(displacing).filter_map(|other| {
            let leaves = leaves_at(blocker, other, members, &expected_load, now)?;
            Some(other.barred_until.map_or(leaves, |until| leaves.max(until)))
        });
        match leaves.min() {
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
    members: &[Member],
    expected_load: &impl Fn(&ModelId) -> Option<(Moment, Duration)>,
    now: Moment,
) -> Option<Moment> {
    // Between two that are forced nothing counts but their priority and what they have to do.
    match (blocker.force_promotion, member.force_promotion) {
        (true, true) => return (blocker.priority <= member.priority).then_some(now),
        (true, false) => return None,
        (false, true) => return Some(now),
        (false, false) => {}
    }
    // One that is there and has to go may be let stay by whatever happens next.
    if member.resident() {
        return Some(now);
    }
    match blocker.residency {
        Residency::Absent => Some(now),
        Residency::Loading => {
            let ready =
                expected_load(&blocker.id).map_or(now, |(since, took)| (since + took).max(now));
            Some(ready + stays(blocker, member, members)?)
        }
        Residency::Serving { .. } if blocker.priority <= member.priority => {
            Some(gives_way_at(blocker, member, cooldown(members), now))
        }
        Residency::Serving { since, .. } => {
            // Who only waits for it may leave at any moment.
            let busy = blocker.activity.in_flight > 0;
            let quiet = if busy { now } else { quiet_since(&blocker.activity, since) };
            Some((quiet + stays(blocker, member, members)?).max(now))
        }
    }
}

/// The earliest moment at which a serving `blocker` gives way to a waiting `member` of at least its priority.
fn gives_way_at(blocker: &Member, member: &Member, cooldown: Duration, now: Moment) -> Moment {
    let as_it_is = protected_until(blocker, cooldown).unwrap_or(now);
    // A busy one may become idle at any moment; then only its load time protects it.
    let at_rest = protected_at_rest_until(blocker, cooldown).unwrap_or(now);
    // What is in flight is not cut off for an equal; what only waits stands behind who waited longer.
    let gives_way_at_work = blocker.priority < member.priority || blocker.demanded();
    let until = if gives_way_at_work { as_it_is.min(at_rest) } else { at_rest };
    until.max(now)
}

/// How long an idle `blocker` keeps its place against `member`; `None` is for ever.
fn stays(blocker: &Member, member: &Member, members: &[Member]) -> Option<Duration> {
    if blocker.priority <= member.priority {
        return Some(Duration::ZERO);
    }
    let lingers = members.iter().any(|other| is_warmer(other, blocker)).then_some(DEMAND_WINDOW);
    let sleeps = (blocker.warmth == Warmth::None).then_some(blocker.idle_timeout);
    [lingers, sleeps].into_iter().flatten().min()
}
