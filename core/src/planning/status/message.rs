//! `status.message`: one line for people.

use flexinfer_crds::conditions::LoadHindrance;
use flexinfer_crds::model::Phase;

use super::Situation;
use crate::planning::group::{Behind, Standing};
use crate::planning::model::{Engine, Hindrance};
use crate::planning::time::time;
use crate::sharing::Turn;

pub(super) fn message(situation: &Situation<'_>, phase: Phase) -> String {
    if let Some(obstacle) = situation.obstacle {
        let serves = phase == Phase::Ready;
        let still = if serves { "; what ran before serves on" } else { "" };
        return format!("{}{still}", obstacle.message);
    }
    match hindrance_of(situation) {
        Some(hindrance) if phase != Phase::Ready => hindrance.message.clone(),
        _ => standing_in_words(situation),
    }
}

/// What holds up its load now, or made the last one fail while that counts.
pub(super) fn hindrance_of<'a>(situation: &'a Situation<'_>) -> Option<&'a Hindrance> {
    let verdict = situation.verdict?;
    match verdict.standing {
        Standing::Holding => situation.engine.hindrance.as_ref(),
        Standing::Barred { .. } => verdict.record.failed.as_ref().map(|failed| &failed.hindrance),
        _ => None,
    }
}

/// What keeps further replicas away, and what to do about it where one that serves goes with its node.
pub(super) fn lacking_in_words(engine: &Engine) -> Option<String> {
    let Hindrance { reason, message } = engine.lacking.as_ref()?;
    let to_do = if engine.apart > 0 && *reason == LoadHindrance::QuotaExceeded {
        "; raise the quota, or none serves from when the node of the old one is gone until it is loaded anew"
    } else {
        ""
    };
    Some(format!("{message}{to_do}"))
}

/// Where it stands, in a sentence without numbers that change by themselves.
pub(super) fn standing_in_words(situation: &Situation<'_>) -> String {
    let serves = situation.engine.ready > 0;
    let Some(verdict) = situation.verdict else { return "not looked at yet".to_owned() };
    match &verdict.standing {
        Standing::Asleep => "asleep; a request wakes it".to_owned(),
        Standing::Holding if serves => match lacking_in_words(situation.engine) {
            None => "serving".to_owned(),
            Some(found) => format!("serving; not all replicas do: {found}"),
        },
        Standing::Holding => match &situation.come {
            None => "starting".to_owned(),
            Some(come) => format!("starting; its weights so far: {come}"),
        },
        Standing::Yielding => {
            "finishing what it serves; a model of the same priority is next".to_owned()
        }
        Standing::Draining => match &verdict.record.preempted {
            Some(swap) => format!("finishing what it serves; {} takes the GPU", swap.by.name),
            None => "going to sleep".to_owned(),
        },
        Standing::Leaving => "stopping".to_owned(),
        Standing::Waiting { behind, .. } => format!("waiting: {}", behind_in_words(behind)),
        Standing::Preempted(swap) => {
            format!("{} took the GPU; a request may take it back", swap.by.name)
        }
        Standing::Barred { .. } => "left alone after it failed to start".to_owned(),
        Standing::Obstructed => "it cannot be started".to_owned(),
        Standing::Gone => "deleted".to_owned(),
    }
}

fn behind_in_words(behind: &Behind) -> String {
    match behind {
        Behind::Leaving(other) => format!("{} is leaving the GPU", other.name),
        Behind::Lease(until) => format!("the GPU is leased until {}", time(*until).0),
        Behind::Turn(Turn::HeldBy(other)) => {
            format!("{} has a higher priority and stays", other.name)
        }
        Behind::Turn(Turn::NotBefore(_)) => "the model that has the GPU is protected".to_owned(),
        Behind::Turn(Turn::Now) => "another model has the GPU".to_owned(),
    }
}
