//! Where a model is in its life.

use flexinfer_crds::conditions::{ConditionReason, ConditionType};
use flexinfer_crds::model::Phase;

use super::{Obstacle, Situation};
use crate::planning::group::Standing;
use crate::planning::model::Hindrance;

pub(super) fn phase(situation: &Situation<'_>) -> Phase {
    let engine = situation.engine;
    // An engine of an earlier spec may serve on while the new one cannot work.
    if engine.ready > 0 && engine.asked > 0 {
        return Phase::Ready;
    }
    if let Some(obstacle) = situation.obstacle {
        return blocked(obstacle);
    }
    let Some(verdict) = situation.verdict else { return Phase::Pending };
    match &verdict.standing {
        Standing::Holding | Standing::Yielding | Standing::Draining => loading(situation),
        Standing::Waiting { .. } | Standing::Obstructed => Phase::Pending,
        Standing::Preempted(_) => Phase::Preempted,
        Standing::Barred { .. } => Phase::Failed,
        Standing::Asleep | Standing::Leaving | Standing::Gone => Phase::Idle,
    }
}

fn blocked(obstacle: &Obstacle) -> Phase {
    // A node may come, so a model that fits on none waits; one that asks for too much does not.
    let too_large = obstacle.reason == <&str>::from(ConditionReason::VramInsufficient);
    let hopeless = obstacle.condition != ConditionType::Schedulable || too_large;
    if obstacle.lasting && hopeless { Phase::Failed } else { Phase::Pending }
}

fn loading(situation: &Situation<'_>) -> Phase {
    let engine = situation.engine;
    if engine.hindrance.as_ref().is_some_and(Hindrance::terminal) {
        Phase::Failed
    } else if engine.asked > 0 && engine.node.is_some() {
        Phase::Loading
    } else {
        Phase::Pending
    }
}
