//! What goes of one member: pods that end already, those whose nodes do, and objects that somebody deletes.

use flexinfer_crds::conditions::ConditionReason;

use super::objects::scaled_elsewhere;
use super::{Engine, Observed, Seen, Wanted, WantedEngine, deleted_at};
use crate::moment::Moment;
use crate::planning::group::Verdict;
use crate::planning::model::unmade;
use crate::planning::moving::{self, Moving, Until, moving};
use crate::planning::objects::{ends_first, revision, until_by_mounts};
use crate::planning::pod::PodId;
use crate::planning::releasing::{self, releasing};
use crate::planning::writing::{Going, Part};

/// Pods that need wait no longer, and when the next one will be.
pub(super) fn released(
    observed: &Observed<'_>,
    member: &Seen<'_>,
    engine: &Engine,
    verdict: Option<&Verdict>,
) -> (Vec<PodId>, Option<Moment>) {
    let (Some(verdict), Some(effective)) = (verdict, member.effective) else {
        return (Vec::new(), None);
    };
    let owner = releasing::Owner {
        engine,
        verdict,
        drain_limit: effective.drain_limit,
        scaled_elsewhere: scaled_elsewhere(member),
    };
    releasing(member.pods.iter().copied(), owner, observed.now)
}

/// What is done about pods on nodes that are about to be taken away, where everything else is as it is `wanted`; and
/// `until` what is, before one ends in whose place one of the wanted Deployment serves.
pub(super) fn moved(
    observed: &Observed<'_>,
    member: &Seen<'_>,
    engine: &Engine,
    (wanted, until): (&Wanted, Until),
) -> Moving {
    // Whatever else is left alone: these pods are there already.
    let moves = !wanted.withheld.contains(&Part::Moving);
    let Some(verdict) = wanted.verdict.as_ref().filter(|_| moves) else {
        return Moving::default();
    };
    let theirs = scaled_elsewhere(member) && verdict.replicas > 0;
    let owner = moving::Owner {
        cluster: observed.cluster,
        replicas: if theirs { engine.asked } else { verdict.replicas },
        draining: verdict.record.draining.is_some(),
        until: if is_redrawn(&wanted.engine) { until } else { until_as_it_is(observed, member) },
        full: member.deployment.and_then(unmade).is_some(),
        revision: member.deployment.and_then(revision),
        ends_first: member.deployment.is_some_and(ends_first),
    };
    moving(member.pods.iter().copied(), owner)
}

/// Whether the next engine is one of a Deployment that was drawn, and not like the one before it.
const fn is_redrawn(wanted: &WantedEngine) -> bool {
    matches!(wanted, WantedEngine::Deployment(_) | WantedEngine::ScaledElsewhere { .. })
}

/// What has to be before an engine ends in whose place another like it shall serve.
fn until_as_it_is(observed: &Observed<'_>, member: &Seen<'_>) -> Until {
    member.deployment.map_or(Until::Served, |there| until_by_mounts(there, observed.claims))
}

/// What is told of what others do to its objects: that some are being deleted and do not go, or who writes them too.
/// Those of a Model that goes itself, go with it.
pub(super) fn meddled(member: &Seen<'_>, now: Moment) -> Option<(ConditionReason, String)> {
    let stays = deleted_at(member.model).is_none();
    let kept: Vec<String> =
        member.going.iter().filter(|_| stays).filter_map(|going| going.told(now)).collect();
    if !kept.is_empty() {
        return Some((ConditionReason::BeingDeleted, kept.join("; ")));
    }
    let told = member.dispute.and_then(|dispute| dispute.told(now))?;
    Some((ConditionReason::FieldConflict, told.to_owned()))
}

/// When the next of them is told.
pub(super) fn told_at(member: &Seen<'_>, now: Moment) -> Option<Moment> {
    member.going.iter().map(Going::until).filter(|until| *until > now).min()
}
