//! When a member that cannot start is given up on, so that it keeps the GPU from nobody.
//!
//! A pod that fails stays where it is while nobody else wants its place: Kubernetes tries it again
//! by itself, and its logs can be read.

use std::time::Duration;

use flexinfer_crds::conditions::LoadHindrance;

use super::Candidate;
use super::members::{demanded, warmth};
use crate::moment::Moment;
use crate::planning::model::Hindrance;
use crate::scaling::{Activity, Warmth};

/// How long a member that was given up on is left alone.
const BAR: Duration = Duration::from_secs(60);

/// The same where nobody waits for it any more; who comes then gets a new try.
const FORGOTTEN: Duration = Duration::from_secs(1);

/// How long a member that no node takes may keep others waiting.
const UNSCHEDULABLE: Duration = Duration::from_secs(30);

/// A member that was given up on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Why.
    pub hindrance: Hindrance,
    /// Until when it is left alone.
    pub until: Moment,
}

/// For each candidate, why and until when it is left alone.
pub(super) fn failures(
    candidates: &[Candidate<'_>],
    activities: &[Activity],
    now: Moment,
) -> Vec<Option<Failed>> {
    let waits = |(candidate, activity): (&Candidate<'_>, &Activity)| {
        !candidate.up() && !candidate.deleted && !candidate.obstructed && demanded(activity)
    };
    let kept_out = candidates.iter().zip(activities).any(waits);
    let pairs = candidates.iter().zip(activities);
    pairs.map(|(candidate, activity)| failure(candidate, activity, kept_out, now)).collect()
}

/// Why `candidate` is left alone, where `kept_out` says whether somebody else waits for its place.
fn failure(
    candidate: &Candidate<'_>,
    activity: &Activity,
    kept_out: bool,
    now: Moment,
) -> Option<Failed> {
    let known = candidate.record.failed.clone().filter(|failed| now < failed.until);
    if known.is_some() || !candidate.up() {
        return known;
    }
    let hindrance = candidate.engine.hindrance.clone()?;
    let long = candidate.engine.made.map(|made| now.since(made)).unwrap_or_default();
    if kept_out && (hindrance.terminal() || patience_over(&hindrance, long)) {
        return Some(Failed { hindrance, until: now + BAR });
    }
    let forgotten = gives_up_at(candidate, activity).is_some_and(|at| now >= at);
    forgotten.then(|| Failed { hindrance, until: now + FORGOTTEN })
}

fn patience_over(hindrance: &Hindrance, long: Duration) -> bool {
    hindrance.reason == LoadHindrance::Unschedulable && long >= UNSCHEDULABLE
}

/// When a load that is held up and that nobody waits for is given up: after its idle timeout, and
/// where the hindrance may pass, not before the engine's start-up limit.
pub(super) fn gives_up_at(candidate: &Candidate<'_>, activity: &Activity) -> Option<Moment> {
    let held_up = candidate.up() && candidate.engine.hindrance.is_some();
    if !held_up || !activity.idle() || warmth(candidate, activity) != Warmth::None {
        return None;
    }
    let since = activity.last_active.max(candidate.engine.made)?;
    let model = candidate.model;
    let terminal = candidate.engine.hindrance.as_ref().is_some_and(Hindrance::terminal);
    let patience = if terminal { Duration::ZERO } else { model.startup_limit };
    Some(since + model.idle_timeout.max(patience))
}
