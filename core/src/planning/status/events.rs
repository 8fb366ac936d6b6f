//! The events of what changed from one status to the next. A status that is written once tells
//! each of them once.

use flexinfer_crds::conditions::{ConditionReason, ConditionType};
use flexinfer_crds::model::{ModelStatus, Phase, SharedGroupState};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::pressure;
use crate::planning::group::Coming;

/// An event about a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Whether somebody should look.
    pub warning: bool,
    /// One word.
    pub reason: String,
    /// One line for people.
    pub note: String,
    /// Whether it is an event of its own, however often the like was told: what it says is of this time alone.
    pub own: bool,
}

impl Announcement {
    /// One that is counted with those like it.
    pub fn new(warning: bool, reason: &str, note: String) -> Self {
        Self { warning, reason: reason.to_owned(), note, own: false }
    }
}

/// Conditions whose loss is told; that of the others shows in the phase.
const TOLD: [ConditionType; 5] = [
    ConditionType::ConfigValid,
    ConditionType::NameUnique,
    ConditionType::Schedulable,
    ConditionType::Cached,
    ConditionType::Applied,
];

/// That a model cannot run.
const FAILED: &str = "Failed";

/// What is told about the change from `old` to `new` of a model that came to its GPU like this.
pub fn announcements(
    old: Option<&ModelStatus>,
    new: &ModelStatus,
    coming: Option<&Coming>,
) -> Vec<Announcement> {
    let mut lost: Vec<Announcement> =
        TOLD.iter().filter_map(|kind| lost(*kind, old, new)).collect();
    // Weights that are not taken are said by two conditions.
    lost.dedup();
    let measured = measured(old, new).into_iter().chain(lacking(old, new));
    let changed = phase_change(old, new, coming).filter(|told| !is_said_by(told, &lost, new));
    let changed = changed.into_iter().chain(draining(old, new));
    changed.chain(pressure::told(old, new)).chain(lost).chain(measured).collect()
}

fn phase_change(
    old: Option<&ModelStatus>,
    new: &ModelStatus,
    coming: Option<&Coming>,
) -> Option<Announcement> {
    let before = old.and_then(|status| status.phase);
    let now = new.phase?;
    if before == Some(now) {
        return None;
    }
    let message = new.message.clone().unwrap_or_default();
    let swapped = swapped_in(coming).filter(|_| now == Phase::Ready);
    let own = swapped.is_some();
    let (warning, reason, note) = match (before, now) {
        (None, Phase::Idle) | (_, Phase::Pending) if !waits_for_its_turn(new) => return None,
        (_, Phase::Pending) => (false, "Queued", message),
        (Some(Phase::Ready | Phase::Loading), Phase::Idle) => (false, "Sleeping", message),
        (_, Phase::Idle) => return None,
        (_, Phase::Loading) => (false, "Loading", "an engine is loading".to_owned()),
        (_, Phase::Ready) => (false, "Ready", loaded_in(new, swapped)),
        (_, Phase::Preempted) => (false, "Preempted", message),
        (_, Phase::Failed) => (true, FAILED, message),
    };
    Some(Announcement { own, ..Announcement::new(warning, reason, note) })
}

fn waits_for_its_turn(status: &ModelStatus) -> bool {
    let place = status.shared_group.as_ref();
    place.is_some_and(|place| place.state == Some(SharedGroupState::Queued))
}

/// How long it took to get there, by phase where it came by a swap.
fn loaded_in(status: &ModelStatus, swapped: Option<String>) -> String {
    let seconds = status.metrics.as_ref().and_then(|metrics| metrics.load_time_seconds.as_ref());
    let loading = seconds.map(|seconds| format!("loading took {seconds} s"));
    let parts: Vec<String> =
        ["serving".to_owned()].into_iter().chain(swapped).chain(loading).collect();
    parts.join("; ")
}

/// How long it took to get the GPU, where another had it.
fn swapped_in(coming: Option<&Coming>) -> Option<String> {
    let Coming { decided, drained, started } = *coming?;
    let (drained, started) = (drained?, started?);
    let draining = drained.since(decided).as_secs_f64();
    let stopping = started.since(drained).as_secs_f64();
    (started > decided)
        .then(|| format!("draining the other took {draining:.1} s, stopping it {stopping:.1} s"))
}

fn draining(old: Option<&ModelStatus>, new: &ModelStatus) -> Option<Announcement> {
    let preempted = |status: &ModelStatus| {
        let place = status.shared_group.as_ref()?;
        let by = place.preempted_by.clone()?;
        (place.state == Some(SharedGroupState::Draining)).then_some(by)
    };
    let by = preempted(new)?;
    if old.and_then(preempted).is_some() {
        return None;
    }
    let note = format!("finishing what it serves; {by} takes the GPU");
    Some(Announcement::new(false, "Draining", note))
}

/// What happened to the measurement of a model; that one is due is not told.
fn measured(old: Option<&ModelStatus>, new: &ModelStatus) -> Option<Announcement> {
    let kind = ConditionType::BenchmarkComplete;
    let now = condition(new, kind)?;
    let before = old.and_then(|status| condition(status, kind));
    let pending: &str = ConditionReason::BenchmarkPending.into();
    if now.reason == pending || before.is_some_and(|old| old.reason == now.reason) {
        return None;
    }
    let troubles = [ConditionReason::BenchmarkFailed, ConditionReason::BenchmarkNotConfigured];
    let warning = troubles.into_iter().any(|trouble| now.reason == <&str>::from(trouble));
    Some(Announcement::new(warning, &now.reason, now.message.clone()))
}

/// That further replicas cannot come; that they only take their time is not told.
fn lacking(old: Option<&ModelStatus>, new: &ModelStatus) -> Option<Announcement> {
    let told = lost(ConditionType::Scaled, old, new)?;
    (told.reason != <&str>::from(ConditionReason::ReplicasStarting)).then_some(told)
}

fn condition(status: &ModelStatus, kind: ConditionType) -> Option<&Condition> {
    status.conditions.iter().find(|condition| condition.type_ == <&str>::from(kind))
}

/// Whether `told` is that the model failed, and one of the conditions it has `lost` with that says why already. That
/// another was lost, since somebody else wrote its objects, say, is no word about it.
fn is_said_by(told: &Announcement, lost: &[Announcement], new: &ModelStatus) -> bool {
    let why = condition(new, ConditionType::Ready).map(|ready| ready.reason.as_str());
    told.reason == FAILED && lost.iter().any(|lost| Some(lost.reason.as_str()) == why)
}

fn lost(kind: ConditionType, old: Option<&ModelStatus>, new: &ModelStatus) -> Option<Announcement> {
    let now = condition(new, kind).filter(|condition| condition.status == "False")?;
    let before = old.and_then(|status| condition(status, kind));
    let same = before.is_some_and(|old| old.status == now.status && old.reason == now.reason);
    (!same).then(|| Announcement::new(true, &now.reason, now.message.clone()))
}
