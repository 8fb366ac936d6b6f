//! How a model stands by what the controller says of it: what those who wait for it may hope for.

use flexinfer_crds::conditions::{ConditionReason, ConditionType, LoadHindrance, Outlook};
use flexinfer_crds::model::{ModelStatus, Phase, SharedGroupState};
use strum::IntoEnumIterator;

use super::{Failure, Reason, Stage};
use crate::ids::ModelId;
use crate::moment::Moment;

/// What a model's status means to requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Where it is in its life; `None` while the controller has not looked at it.
    pub phase: Option<Phase>,
    /// It takes nothing new and leaves.
    pub draining: bool,
    /// It has no engine, or only what is left of one.
    pub away: bool,
    /// Waiting does not help, for this reason.
    pub failure: Option<Failure>,
    /// A model of higher priority holds the GPU and does not leave it by itself.
    pub held_by: Option<ModelId>,
    /// It gets the GPU not before this moment, whatever happens.
    pub not_before: Option<Moment>,
    /// What those who wait for its first endpoint wait for.
    pub stage: Stage,
}

impl Standing {
    /// Nothing but this failure.
    pub fn failed(failure: Failure) -> Self {
        Self { phase: Some(Phase::Failed), failure: Some(failure), ..Self::default() }
    }

    /// Whether the controller has decided about it: it serves and stays. Otherwise what is asked for has to
    /// reach the controller at once.
    pub fn settled(&self) -> bool {
        self.phase == Some(Phase::Ready) && !self.draining
    }

    /// Whether the engines that there were under the standing `before` are stopped: the model was given up, or
    /// left and did not stay after all.
    pub fn stops_those_of(&self, before: &Self) -> bool {
        let left = before.draining && !self.draining && !self.has_engines();
        left || self.away && !before.away
    }

    /// Whether the engines that there are now were started after the last that were stopped.
    pub fn has_engines(&self) -> bool {
        !self.away && matches!(self.phase, Some(Phase::Loading | Phase::Ready))
    }
}

/// What one model says; who holds its GPU, the others of its group do, and what its times are here, the caller's clock.
impl From<&ModelStatus> for Standing {
    fn from(status: &ModelStatus) -> Self {
        let state = status.shared_group.as_ref().and_then(|group| group.state);
        Self {
            phase: status.phase,
            draining: state == Some(SharedGroupState::Draining),
            away: status.phase == Some(Phase::Idle)
                || matches!(state, Some(SharedGroupState::Queued | SharedGroupState::Preempted)),
            failure: failure(status),
            held_by: None,
            not_before: None,
            stage: Stage::from(status),
        }
    }
}

/// Why waiting does not help, if so. What an earlier attempt left behind says nothing about the next:
/// a model that sleeps or serves has not failed.
fn failure(status: &ModelStatus) -> Option<Failure> {
    let failed = status.phase == Some(Phase::Failed);
    if !failed && !matches!(status.phase, Some(Phase::Pending | Phase::Loading)) {
        return None;
    }
    let wrong = || status.conditions.iter().filter(|condition| condition.status == "False");
    let message = |own: &str| {
        let general = status.message.as_deref().unwrap_or("the controller does not say why");
        if own.is_empty() { general.to_owned() } else { own.to_owned() }
    };
    let hindrance = wrong()
        .find_map(|condition| Some((terminal(&condition.reason)?, message(&condition.message))));
    if let Some((reason, message)) = hindrance {
        return Some(Failure::new(reason, message));
    }
    let ready: &str = ConditionType::Ready.into();
    let told = wrong()
        .find_map(|condition| Some((unfit(&condition.reason)?, message(&condition.message))));
    let unnamed = || {
        let of_ready = wrong().find(|condition| condition.type_ == ready);
        let own = of_ready.map_or("", |condition| condition.message.as_str());
        (Reason::DiedWhileLoading, message(own))
    };
    let (reason, message) = failed.then(|| told.unwrap_or_else(unnamed))?;
    Some(Failure::new(reason, message))
}

/// The hindrance that ends a wait at once, under the name by which requests are told.
fn terminal(reason: &str) -> Option<Reason> {
    let hindrance = LoadHindrance::iter().find(|known| <&str>::from(known) == reason)?;
    if hindrance.outlook() == Outlook::Patient {
        return None;
    }
    match hindrance {
        LoadHindrance::ImagePullFailed => Some(Reason::ImagePullFailed),
        LoadHindrance::CrashLoop => Some(Reason::CrashLoop),
        LoadHindrance::InitContainerFailed => Some(Reason::InitContainerFailed),
        LoadHindrance::QuotaExceeded => Some(Reason::QuotaExceeded),
        LoadHindrance::BadSource => Some(Reason::BadSource),
        LoadHindrance::GatedRepository => Some(Reason::GatedRepository),
        LoadHindrance::Unschedulable
        | LoadHindrance::ImagePulling
        | LoadHindrance::Provisioning => None,
    }
}

/// Reasons of a failed model that somebody has to change something for.
fn unfit(reason: &str) -> Option<Reason> {
    let known = ConditionReason::iter().find(|known| <&str>::from(known) == reason)?;
    match known {
        ConditionReason::VramInsufficient => Some(Reason::VramInsufficient),
        ConditionReason::BackendUnsupported
        | ConditionReason::ImageNotConfigured
        | ConditionReason::Refused
        | ConditionReason::NameTaken => Some(Reason::InvalidConfig),
        ConditionReason::PrefetchFailed | ConditionReason::QuantizationFailed => {
            Some(Reason::DownloadFailed)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use flexinfer_crds::model::SharedGroupStatus;
    use serde_json::json;

    use super::*;

    fn status(phase: Phase, reason: &str) -> ModelStatus {
        let condition = json!({
            "type": "Ready", "status": "False", "reason": reason, "message": "what happened",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        ModelStatus {
            phase: Some(phase),
            conditions: vec![serde_json::from_value(condition).expect("a condition")],
            ..ModelStatus::default()
        }
    }

    fn reason(phase: Phase, reason: &str) -> Option<Reason> {
        Standing::from(&status(phase, reason)).failure.map(|failure| failure.reason)
    }

    #[test]
    fn queue_11_a_terminal_reason_ends_the_wait_and_a_patient_one_does_not() {
        let terminal = ["ImagePullFailed", "CrashLoop", "InitContainerFailed", "QuotaExceeded"];
        for name in terminal {
            let found = reason(Phase::Loading, name).map(|reason| reason.to_string());
            assert_eq!(found.as_deref(), Some(name));
        }
        for name in ["Unschedulable", "ImagePulling", "Provisioning", "StartingBackend"] {
            assert_eq!(reason(Phase::Pending, name), None, "{name}");
        }
    }

    #[test]
    fn every_terminal_hindrance_has_a_name_for_requests() {
        for hindrance in LoadHindrance::iter() {
            let name: &str = hindrance.into();
            let ends = hindrance.outlook() == Outlook::Terminal;
            assert_eq!(terminal(name).is_some(), ends, "{name}");
        }
    }

    #[test]
    fn what_an_earlier_attempt_left_behind_ends_no_wait() {
        assert_eq!(reason(Phase::Idle, "CrashLoop"), None);
        assert_eq!(reason(Phase::Ready, "CrashLoop"), None);
    }

    #[test]
    fn a_failed_model_says_why_whatever_the_reason() {
        assert_eq!(reason(Phase::Failed, "VRAMInsufficient"), Some(Reason::VramInsufficient));
        assert_eq!(reason(Phase::Failed, "ImageNotConfigured"), Some(Reason::InvalidConfig));
        let unknown = Standing::from(&status(Phase::Failed, "FromTheFuture")).failure;
        assert_eq!(unknown.expect("it failed").message, "what happened");
    }

    #[test]
    fn a_draining_model_takes_nothing_new() {
        let group = SharedGroupStatus {
            state: Some(SharedGroupState::Draining),
            ..SharedGroupStatus::default()
        };
        let status = ModelStatus { shared_group: Some(group), ..ModelStatus::default() };
        assert!(Standing::from(&status).draining);
        assert!(!Standing::from(&status).settled());
    }

    #[test]
    fn engines_are_stopped_when_their_model_lost_its_place_and_not_when_it_stays() {
        let of = |phase, state| {
            let shared_group = Some(SharedGroupStatus { state, ..SharedGroupStatus::default() });
            Standing::from(&ModelStatus {
                phase: Some(phase),
                shared_group,
                ..ModelStatus::default()
            })
        };
        let serving = of(Phase::Ready, Some(SharedGroupState::Active));
        let draining = of(Phase::Ready, Some(SharedGroupState::Draining));
        let queued = of(Phase::Pending, Some(SharedGroupState::Queued));
        let loading = of(Phase::Loading, Some(SharedGroupState::Active));
        for left in [
            &queued,
            &of(Phase::Preempted, Some(SharedGroupState::Preempted)),
            &of(Phase::Idle, None),
        ] {
            assert!(left.stops_those_of(&draining) && left.stops_those_of(&serving), "{left:?}");
            assert!(!left.stops_those_of(&queued), "it said so before");
            assert!(!left.has_engines());
        }
        // Alone on its GPU, and asked for again: it comes back at once.
        assert!(of(Phase::Pending, None).stops_those_of(&draining));
        assert!(!serving.stops_those_of(&draining), "it stays after all");
        assert!(!draining.stops_those_of(&serving), "it finishes what it has");
        // A node that is not heard of any more says nothing about its engines.
        assert!(!of(Phase::Pending, Some(SharedGroupState::Active)).stops_those_of(&serving));
        assert!(loading.has_engines() && serving.has_engines());
    }
}
