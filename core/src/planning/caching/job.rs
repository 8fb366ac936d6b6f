//! How a Job stands to the one that is wanted.

use std::time::Duration;

use flexinfer_crds::conditions::LoadHindrance;
use flexinfer_crds::keys;
use k8s_openapi::api::batch::v1::{Job, JobCondition};
use k8s_openapi::jiff::Timestamp;

use super::Exit;
use crate::activation::Reason;
use crate::planning::model::Hindrance;
use crate::planning::objects::spec_hash;

/// What else has to be known of a Job.
pub(super) struct Sight<'a> {
    /// How its last pod failed.
    pub(super) exit: Option<&'a Exit>,
    /// What keeps its pod from beginning.
    pub(super) held_up: Option<&'a Hindrance>,
    /// What that means.
    pub(super) reason: Option<Reason>,
    /// How long it is left alone after it failed.
    pub(super) rest: Duration,
    /// What is awaited that somebody else may change unseen, if anything is.
    pub(super) awaited: Option<Awaited>,
    pub(super) now: Timestamp,
}

/// Something that somebody else may change at any time, and that nothing tells of.
pub(super) struct Awaited {
    /// Since when it has been awaited.
    pub(super) since: Timestamp,
    /// How soon it is looked again at first.
    pub(super) shortest: Duration,
    /// How long that is put off at most.
    pub(super) longest: Duration,
}

/// How a Job stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Standing {
    /// It is being deleted.
    Going,
    /// It does something else than is wanted.
    Other,
    /// It has no pod yet.
    Waiting,
    /// It has a pod that cannot begin.
    HeldUp(Hindrance),
    /// It works.
    Running,
    /// It did what is wanted.
    Done,
    /// It gave up.
    Failed {
        /// What those who wait are told.
        hindrance: LoadHindrance,
        /// What happened.
        message: String,
        /// In how long it may be tried again; zero for now, `None` if only a change can help.
        rest: Option<Duration>,
    },
}

pub(super) fn standing(job: &Job, wanted: &Job, sight: &Sight<'_>) -> Standing {
    if job.metadata.deletion_timestamp.is_some() {
        return Standing::Going;
    }
    if !same_work(job, wanted) {
        return Standing::Other;
    }
    if condition(job, "Complete").is_some() {
        return Standing::Done;
    }
    // Another image, node or Secret may mend what failed or cannot begin.
    let changed = spec_hash(job) != spec_hash(wanted);
    let Some(failed) = condition(job, "Failed") else {
        return not_ended(job, changed, sight);
    };
    let rest = if changed { Some(Duration::ZERO) } else { rest(failed, sight) };
    let message = message(failed, sight.exit);
    Standing::Failed { hindrance: hindrance(sight.reason), message, rest }
}

/// How a Job stands that has neither done its work nor given up.
fn not_ended(job: &Job, changed: bool, sight: &Sight<'_>) -> Standing {
    match sight.held_up.cloned() {
        Some(Hindrance { reason, message }) if changed => {
            Standing::Failed { hindrance: reason, message, rest: Some(Duration::ZERO) }
        }
        Some(held_up) => Standing::HeldUp(held_up),
        None => {
            let active = job.status.as_ref().and_then(|status| status.active).unwrap_or(0);
            if active > 0 { Standing::Running } else { Standing::Waiting }
        }
    }
}

/// Whether two Jobs do the same.
pub(super) fn same_work(one: &Job, other: &Job) -> bool {
    annotation(one, keys::JOB_WORK) == annotation(other, keys::JOB_WORK)
}

fn annotation<'j>(job: &'j Job, key: &str) -> Option<&'j String> {
    job.metadata.annotations.as_ref()?.get(key)
}

fn condition<'j>(job: &'j Job, kind: &str) -> Option<&'j JobCondition> {
    let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().find(|condition| condition.type_ == kind && condition.status == "True")
}

/// What a failed Job means to those who wait. A Job has had its tries, so that waiting helps nobody.
fn hindrance(reason: Option<Reason>) -> LoadHindrance {
    match reason {
        Some(Reason::GatedRepository) => LoadHindrance::GatedRepository,
        Some(Reason::BadSource | Reason::DigestMismatch) => LoadHindrance::BadSource,
        _ => LoadHindrance::InitContainerFailed,
    }
}

/// How long it is left alone: for ever, if only somebody's change can help that is seen here.
fn rest(failed: &JobCondition, sight: &Sight<'_>) -> Option<Duration> {
    let since = failed.last_transition_time.as_ref().map_or(sight.now, |time| time.0);
    // A volume that is full may be grown; nothing tells us when.
    let lasts =
        sight.reason.is_some_and(|reason| !reason.transient() && reason != Reason::DiskFull);
    let rest = match &sight.awaited {
        _ if !lasts => sight.rest,
        None => return None,
        // Each wait is as long as all before it together.
        Some(awaited) => between(awaited.since, since).clamp(awaited.shortest, awaited.longest),
    };
    Some(rest.saturating_sub(between(since, sight.now)))
}

/// How long passed from `early` to `late`; nothing where they are in another order.
fn between(early: Timestamp, late: Timestamp) -> Duration {
    Duration::try_from(late.duration_since(early)).unwrap_or_default()
}

fn message(failed: &JobCondition, exit: Option<&Exit>) -> String {
    let last = exit.and_then(|exit| exit.message.lines().last()).filter(|line| !line.is_empty());
    let told = last.map(str::to_owned).or_else(|| failed.message.clone());
    told.unwrap_or_else(|| "the Job failed".to_owned())
}
