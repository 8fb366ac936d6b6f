//! How a Job stands to the one that is wanted.

use std::time::Duration;

use flexinfer_crds::conditions::LoadHindrance;
use flexinfer_crds::keys;
use k8s_openapi::api::batch::v1::{Job, JobCondition};

use super::{Exit, REST, Seen};
use crate::activation::Reason;
use crate::planning::objects::spec_hash;

/// How a Job stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Standing {
    /// It is being deleted.
    Going,
    /// It does something else than is wanted.
    Other,
    /// It has no pod yet.
    Waiting,
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

pub(super) fn standing(job: &Job, wanted: &Job, seen: Seen<'_>) -> Standing {
    if job.metadata.deletion_timestamp.is_some() {
        return Standing::Going;
    }
    if annotation(job, keys::JOB_WORK) != annotation(wanted, keys::JOB_WORK) {
        return Standing::Other;
    }
    if condition(job, "Complete").is_some() {
        return Standing::Done;
    }
    let Some(failed) = condition(job, "Failed") else {
        let active = job.status.as_ref().and_then(|status| status.active).unwrap_or(0);
        return if active > 0 { Standing::Running } else { Standing::Waiting };
    };
    // Another image, secret, node or token may mend what failed.
    let changed = spec_hash(job) != spec_hash(wanted)
        || annotation(job, keys::JOB_TOKEN).map(String::as_str) != seen.token;
    let reason =
        seen.exit.and_then(|exit| u8::try_from(exit.status).ok().and_then(Reason::of_exit_status));
    let rest = if changed { Some(Duration::ZERO) } else { rest(failed, reason, seen) };
    let message = message(failed, seen.exit);
    Standing::Failed { hindrance: hindrance(reason), message, rest }
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

/// How long it is left alone: for ever, if only somebody's change can help.
fn rest(failed: &JobCondition, reason: Option<Reason>, seen: Seen<'_>) -> Option<Duration> {
    // A volume that is full may be grown; nothing tells us when.
    if reason.is_some_and(|reason| !reason.transient() && reason != Reason::DiskFull) {
        return None;
    }
    let since = failed.last_transition_time.as_ref().map_or(seen.now, |time| time.0);
    let passed = Duration::try_from(seen.now.duration_since(since)).unwrap_or_default();
    Some(REST.saturating_sub(passed))
}

fn message(failed: &JobCondition, exit: Option<&Exit>) -> String {
    let last = exit.and_then(|exit| exit.message.lines().last()).filter(|line| !line.is_empty());
    let told = last.map(str::to_owned).or_else(|| failed.message.clone());
    told.unwrap_or_else(|| "the Job failed".to_owned())
}
