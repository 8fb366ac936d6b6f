//! What the election sees of a member of a group on a cluster.

use super::{Candidate, Failed};
use crate::moment::Moment;
use crate::scaling::{Activity, Warmth};
use crate::sharing::{Member, Residency};

/// Whether somebody waits.
pub(super) fn demanded(activity: &Activity) -> bool {
    activity.waiting > 0
}

/// The member that `candidate` is in its group's election; `None` for one that has no claim, since
/// its Model is being deleted, it has to go to sleep, or something but its turn keeps it from being started.
pub(super) fn member(
    candidate: &Candidate<'_>,
    activity: Activity,
    failed: Option<&Failed>,
    all: &[Candidate<'_>],
) -> Option<Member> {
    if candidate.deleted || candidate.evicted || (candidate.obstructed && !candidate.up()) {
        return None;
    }
    let model = candidate.model;
    Some(Member {
        id: model.id.clone(),
        priority: model.priority,
        force_promotion: model.force_promotion,
        warmth: warmth(candidate, &activity),
        idle_timeout: model.idle_timeout,
        swap_cooldown: model.swap_cooldown,
        vram_mib: model.vram_estimate_mib,
        barred_until: failed.map(|failed| failed.until),
        residency: residency(candidate, all),
        activity,
    })
}

/// Why it stays up without requests: a preload pins it until it was used once.
pub(super) fn warmth(candidate: &Candidate<'_>, activity: &Activity) -> Warmth {
    let model = candidate.model;
    let preloading = model.preload && activity.last_active.is_none();
    if model.warm_primary {
        Warmth::Primary
    } else if model.min_replicas > 0 || preloading {
        Warmth::Pinned
    } else {
        Warmth::None
    }
}

fn residency(candidate: &Candidate<'_>, all: &[Candidate<'_>]) -> Residency {
    let engine = &candidate.engine;
    let (true, Some(ready)) = (candidate.up(), engine.ready_since) else {
        return if candidate.up() { Residency::Loading } else { Residency::Absent };
    };
    let load_took = engine.made.map(|made| ready.since(made)).unwrap_or_default();
    // An engine that came in the place of another began nothing.
    let since = candidate.serving_since.map_or(ready, |known| known.min(ready));
    Residency::Serving { since, load_took, swapped_in: swapped_in(candidate, all) }
}

/// When the swap that brought it in was decided: who had to leave for it remembers.
fn swapped_in(candidate: &Candidate<'_>, all: &[Candidate<'_>]) -> Option<Moment> {
    let swaps = all.iter().filter_map(|other| other.record.preempted.as_ref());
    swaps.filter(|swap| swap.by == candidate.model.id).map(|swap| swap.at).max()
}
