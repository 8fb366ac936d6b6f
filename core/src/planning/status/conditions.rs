//! A model's conditions, each with the time when it last flipped.

use flexinfer_crds::conditions::{ConditionReason, ConditionType};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::message::{hindrance_of, lacking_in_words, standing_in_words};
use super::{Obstacle, Situation};
use crate::planning::group::Standing;
use crate::planning::placing::Doubt;
use crate::planning::time::time;

/// A condition before it has its time.
struct Finding {
    kind: ConditionType,
    holds: bool,
    reason: &'static str,
    message: String,
}

pub(super) fn conditions(situation: &Situation<'_>) -> Vec<Condition> {
    [
        config_valid(situation),
        name_unique(situation),
        schedulable(situation),
        cached(situation),
        applied(situation),
        loaded(situation),
        ready(situation),
    ]
    .into_iter()
    .chain(scaled(situation))
    .chain(benchmarked(situation))
    .map(|finding| dated(finding, situation))
    .collect()
}

/// With the time of its last flip: the old one's where it still says the same.
fn dated(finding: Finding, situation: &Situation<'_>) -> Condition {
    let metadata = &situation.model.metadata;
    let old = situation.model.status.iter().flat_map(|status| &status.conditions);
    let kind = finding.kind.to_string();
    let status = if finding.holds { "True" } else { "False" };
    let same = old.into_iter().find(|old| old.type_ == kind && old.status == status);
    Condition {
        last_transition_time: same
            .map_or_else(|| time(situation.now), |old| old.last_transition_time.clone()),
        type_: kind,
        status: status.to_owned(),
        reason: finding.reason.to_owned(),
        message: finding.message,
        observed_generation: metadata.generation,
    }
}

fn met(kind: ConditionType, reason: ConditionReason, message: &str) -> Finding {
    Finding { kind, holds: true, reason: reason.into(), message: message.to_owned() }
}

/// The finding of an obstacle, if it is about this condition.
fn not_met(kind: ConditionType, situation: &Situation<'_>) -> Option<Finding> {
    let Obstacle { condition, reason, message, lasting: _ } = situation.obstacle?;
    (*condition == kind).then(|| Finding { kind, holds: false, reason, message: message.clone() })
}

fn config_valid(situation: &Situation<'_>) -> Finding {
    let kind = ConditionType::ConfigValid;
    not_met(kind, situation)
        .unwrap_or_else(|| met(kind, ConditionReason::ConfigValid, "the spec can work"))
}

fn name_unique(situation: &Situation<'_>) -> Finding {
    let kind = ConditionType::NameUnique;
    match situation.name_conflict {
        None => met(kind, ConditionReason::NameUnique, "nobody else claims its names"),
        Some(conflict) => Finding {
            kind,
            holds: false,
            reason: ConditionReason::AliasConflict.into(),
            message: conflict.to_owned(),
        },
    }
}

fn schedulable(situation: &Situation<'_>) -> Finding {
    let kind = ConditionType::Schedulable;
    let unschedulable = hindrance_of(situation).filter(|hindrance| {
        hindrance.reason == flexinfer_crds::conditions::LoadHindrance::Unschedulable
    });
    if let Some(hindrance) = unschedulable {
        let (reason, message) = (hindrance.reason.into(), hindrance.message.clone());
        return Finding { kind, holds: false, reason, message };
    }
    if let Some(finding) = not_met(kind, situation) {
        return finding;
    }
    let doubts: Vec<String> = situation.doubts.iter().map(ToString::to_string).collect();
    let nowhere = |doubt: &Doubt| matches!(doubt, Doubt::NoMatchingNodes(_));
    if situation.doubts.iter().any(nowhere) {
        let reason = ConditionReason::NoMatchingNodes.into();
        return Finding { kind, holds: false, reason, message: doubts.join("; ") };
    }
    let message = ["there are nodes for it".to_owned()].into_iter().chain(doubts);
    let message: Vec<String> = message.collect();
    met(kind, ConditionReason::Schedulable, &message.join("; "))
}

fn cached(situation: &Situation<'_>) -> Finding {
    let kind = ConditionType::Cached;
    let unfilled = || {
        let Obstacle { reason, message, .. } = situation.unfilled?.clone();
        Some(Finding { kind, holds: false, reason, message })
    };
    not_met(kind, situation).or_else(unfilled).unwrap_or_else(|| match situation.cached {
        Some((reason, message)) => met(kind, *reason, message),
        None => {
            met(kind, ConditionReason::NoCacheJob, "nothing has to be fetched before it starts")
        }
    })
}

fn applied(situation: &Situation<'_>) -> Finding {
    let kind = ConditionType::Applied;
    let meddled = || situation.meddled.clone().map(|(reason, message)| (reason.into(), message));
    match situation.writing.trouble(situation.cached.is_some()).or_else(meddled) {
        None => met(kind, ConditionReason::Applied, "its objects are as they shall be"),
        Some((reason, message)) => Finding { kind, holds: false, reason, message },
    }
}

/// Nothing for a Model that never has more than one replica, but while another is to come in the place of that. One
/// that is to be replaced serves, and is none of those that are asked for.
fn scaled(situation: &Situation<'_>) -> Option<Finding> {
    let kind = ConditionType::Scaled;
    let engine = situation.engine;
    let serverless = situation.model.spec.serverless.as_ref();
    let limits = serverless.map(|found| [found.min_replicas, found.max_replicas]);
    let may_be_several = limits.into_iter().flatten().flatten().any(|limit| limit > 1);
    let replaced = engine.apart > 0 && engine.asked > 0;
    if !may_be_several && engine.asked < 2 && !replaced {
        return None;
    }
    let own = engine.ready.saturating_sub(engine.apart);
    if own >= engine.asked {
        let message = match engine.asked {
            0 => "no replica is wanted".to_owned(),
            asked => format!("{asked} of {asked} replicas serve"),
        };
        return Some(met(kind, ConditionReason::ReplicasReady, &message));
    }
    let count = match engine.apart {
        0 => format!("{own} of {} replicas serve", engine.asked),
        apart => format!("{own} of {} replicas serve, beside {apart} to be replaced", engine.asked),
    };
    let found = engine.lacking.as_ref().or(engine.hindrance.as_ref());
    let why = lacking_in_words(engine).or_else(|| Some(found?.message.clone()));
    let (reason, message) = match found.zip(why) {
        Some((found, why)) => (found.reason.into(), format!("{count}: {why}")),
        None => (ConditionReason::ReplicasStarting.into(), count),
    };
    Some(Finding { kind, holds: false, reason, message })
}

/// Nothing for a Model that does not ask to be measured.
fn benchmarked(situation: &Situation<'_>) -> Option<Finding> {
    let (reason, message) = situation.benchmark?;
    let holds = *reason == ConditionReason::BenchmarkSucceeded;
    let (reason, message) = ((*reason).into(), message.clone());
    Some(Finding { kind: ConditionType::BenchmarkComplete, holds, reason, message })
}

fn loaded(situation: &Situation<'_>) -> Finding {
    let engine = situation.engine;
    let kind = ConditionType::Loaded;
    if engine.ready > 0 {
        return met(kind, ConditionReason::BackendReady, "an engine has loaded the weights");
    }
    let starts = engine.asked > 0;
    let reason = if starts {
        ConditionReason::StartingBackend
    } else {
        ConditionReason::WaitingForActivation
    };
    let message = if starts { "an engine is starting" } else { "no engine runs" };
    Finding { kind, holds: false, reason: reason.into(), message: message.to_owned() }
}

fn ready(situation: &Situation<'_>) -> Finding {
    let kind = ConditionType::Ready;
    let engine = situation.engine;
    if engine.ready > 0 && engine.asked > 0 {
        return met(kind, ConditionReason::BackendReady, "an engine serves");
    }
    let unready =
        |reason: &'static str, message: String| Finding { kind, holds: false, reason, message };
    if let Some(obstacle) = situation.obstacle {
        return unready(obstacle.reason, obstacle.message.clone());
    }
    if let Some(hindrance) = hindrance_of(situation) {
        return unready(hindrance.reason.into(), hindrance.message.clone());
    }
    let reason = match situation.verdict.map(|verdict| &verdict.standing) {
        Some(Standing::Holding | Standing::Yielding | Standing::Draining) => {
            ConditionReason::StartingBackend
        }
        Some(Standing::Waiting { .. }) => ConditionReason::WaitingForGpu,
        Some(Standing::Preempted(_)) => ConditionReason::Preempted,
        _ => ConditionReason::WaitingForActivation,
    };
    unready(reason.into(), standing_in_words(situation))
}
