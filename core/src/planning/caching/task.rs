//! One Job on the way to the weights: from how it stands to the next step.

use std::time::Duration;

use flexinfer_crds::conditions::{ConditionReason, LoadHindrance};
use flexinfer_crds::model::JobPhase;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::jiff::Timestamp;

use super::job::{Sight, Standing, standing};
use super::{CacheStep, Caching, Exit, Seen};
use crate::activation::Reason;
use crate::planning::objects::{Filling, Work};

/// How long a Job of ours that failed is left alone before it is tried again by itself.
const REST: Duration = Duration::from_mins(10);

/// The same of one that takes hours.
const LONG_REST: Duration = Duration::from_hours(1);

/// What a Job is for, and the words that tell of it.
#[derive(Clone, Copy)]
pub(super) struct Task {
    /// What it does, as the beginning of a sentence.
    what: &'static str,
    pending: ConditionReason,
    running: ConditionReason,
    failed: ConditionReason,
    done: ConditionReason,
    rest: Duration,
    /// Whether the program is ours, so that its exit status tells why it failed.
    ours: bool,
    /// Since when there has been a claim whose content somebody else sees to, where that is what has to be there.
    others_since: Option<Timestamp>,
}

impl Task {
    /// Getting the weights to where they are held, or looking whether they are there.
    pub(super) fn filling(filling: &Filling, others: Option<&PersistentVolumeClaim>) -> Self {
        let (what, running) = match filling {
            Filling::Checked(_) => ("looking at the weights", ConditionReason::CacheCheck),
            Filling::ByJob(works) if matches!(works.first(), Some(Work::Copy { .. })) => {
                ("copying the weights", ConditionReason::CacheCopy)
            }
            _ => ("fetching the weights", ConditionReason::PrefetchRunning),
        };
        Self {
            what,
            pending: ConditionReason::PrefetchPending,
            running,
            failed: ConditionReason::PrefetchFailed,
            done: ConditionReason::PrefetchSucceeded,
            rest: REST,
            ours: true,
            others_since: others.map(|claim| {
                let made = claim.metadata.creation_timestamp.as_ref();
                made.map_or(Timestamp::MIN, |made| made.0)
            }),
        }
    }

    /// Making them smaller.
    pub(super) const fn quantizing() -> Self {
        Self {
            what: "quantizing the weights",
            pending: ConditionReason::QuantizationRunning,
            running: ConditionReason::QuantizationRunning,
            failed: ConditionReason::QuantizationFailed,
            done: ConditionReason::PrefetchSucceeded,
            rest: LONG_REST,
            ours: false,
            others_since: None,
        }
    }

    /// The reason while it has not begun.
    pub(super) const fn pending(self) -> ConditionReason {
        self.pending
    }

    /// What to do next, where `job` is there and `wanted` shall be.
    pub(super) fn next(
        self,
        job: Option<&Job>,
        exit: Option<&Exit>,
        wanted: Job,
        seen: Seen<'_>,
    ) -> Caching {
        let Some(job) = job else {
            let message = format!("{} begins", self.what);
            let step = Some(CacheStep::Make(Box::new(with_token(wanted, seen.token))));
            return Caching { step, ..Caching::shut(self.pending, message) };
        };
        let reason = exit
            .filter(|_| self.ours)
            .and_then(|exit| u8::try_from(exit.status).ok().and_then(Reason::of_exit_status));
        let Seen { token, now, awaited_since, .. } = seen;
        // What was before the claim was made is no wait for what is on it.
        let awaited = self.others_since.map(|since| since.max(awaited_since.unwrap_or(now)));
        let sight = Sight { exit, reason, token, rest: self.rest, awaited, now };
        let name = job.metadata.name.clone();
        let caching = self.told(standing(job, &wanted, &sight), name.clone().unwrap_or_default());
        Caching { job_name: name.filter(|_| caching.job.is_some()), ..caching }
    }

    /// What a Job called `name` that stands like this comes to.
    fn told(self, standing: Standing, name: String) -> Caching {
        let again = |message: String| {
            let step = Some(CacheStep::Delete(name));
            Caching { step, ..Caching::shut(self.pending, message) }
        };
        match standing {
            Standing::Going => Caching::shut(self.pending, "an older Job is being deleted"),
            Standing::Other => {
                again("the Job does something else than is wanted now; it is done anew".to_owned())
            }
            Standing::Waiting => Caching {
                job: Some(JobPhase::Pending),
                hindrance: Some(LoadHindrance::Provisioning),
                ..Caching::shut(self.pending, format!("{} has not started", self.what))
            },
            Standing::Running => Caching {
                job: Some(JobPhase::Running),
                hindrance: Some(LoadHindrance::Provisioning),
                ..Caching::shut(self.running, format!("{} is under way", self.what))
            },
            Standing::Done => Caching {
                job: Some(JobPhase::Succeeded),
                ..Caching::open(self.done, "the weights are there")
            },
            Standing::Failed { message, rest: Some(Duration::ZERO), .. } => {
                again(format!("{message}; it is tried again"))
            }
            Standing::Failed { hindrance, message, rest } => Caching {
                job: Some(JobPhase::Failed),
                hindrance: Some(hindrance),
                look_again: rest,
                ..Caching::shut(self.failed, message)
            },
        }
    }
}

/// The Job with the version of the token that it is made with: one that failed for want of a token is tried
/// again when there is another.
fn with_token(mut job: Job, token: Option<&str>) -> Job {
    if let Some(token) = token {
        let annotations = job.metadata.annotations.get_or_insert_default();
        annotations.insert(flexinfer_crds::keys::JOB_TOKEN.to_owned(), token.to_owned());
    }
    job
}
