//! One Job on the way to the weights: from how it stands to the next step.

use std::time::Duration;

use flexinfer_crds::conditions::{ConditionReason, LoadHindrance};
use flexinfer_crds::model::JobPhase;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::jiff::Timestamp;

use super::job::{Awaited, Sight, Standing, standing};
use super::{CacheStep, Caching, Exit, Seen};
use crate::activation::Reason;
use crate::planning::model::{Hindrance, kept_from_beginning};
use crate::planning::objects::{Filling, Work};

/// How long a Job of ours that failed is left alone before it is tried again by itself.
const REST: Duration = Duration::from_mins(10);

/// The same of one that takes hours, or that waits for what a hub's owner may allow.
const LONG_REST: Duration = Duration::from_hours(1);

/// How soon it is looked again for what somebody else may have put on a claim.
const SHORT_REST: Duration = Duration::from_secs(15);

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
    /// Whether a hub decides who may fetch, by a token that is in a Secret which only the Job's pod sees.
    by_token: bool,
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
            by_token: running == ConditionReason::PrefetchRunning,
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
            by_token: false,
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
        pods: &[&Pod],
        wanted: Job,
        seen: Seen<'_>,
    ) -> Caching {
        let Some(job) = job else {
            let message = format!("{} begins", self.what);
            let step = Some(CacheStep::Make(Box::new(wanted)));
            return Caching { step, ..Caching::shut(self.pending, message) };
        };
        let exit = Exit::of(pods.iter().copied());
        let reason = exit
            .as_ref()
            .filter(|_| self.ours)
            .and_then(|exit| u8::try_from(exit.status).ok().and_then(Reason::of_exit_status));
        let held_up = kept_from_beginning(pods.iter().copied());
        let sight = Sight {
            exit: exit.as_ref(),
            held_up: held_up.as_ref(),
            reason,
            rest: self.rest,
            awaited: self.awaited(reason, seen),
            now: seen.now,
        };
        let name = job.metadata.name.clone();
        let caching = self.told(standing(job, &wanted, &sight), name.clone().unwrap_or_default());
        Caching { job_name: name.filter(|_| caching.job.is_some()), ..caching }
    }

    /// What may have changed unseen since a Job failed for `reason`.
    fn awaited(self, reason: Option<Reason>, seen: Seen<'_>) -> Option<Awaited> {
        let since = seen.awaited_since.unwrap_or(seen.now);
        if let Some(made) = self.others_since {
            // What was before the claim was made is no wait for what is on it.
            let since = since.max(made);
            return Some(Awaited { since, shortest: SHORT_REST, longest: self.rest });
        }
        // Who lacks the right token is told that a repository is gated, or that there is none.
        let refused = matches!(reason, Some(Reason::GatedRepository | Reason::BadSource));
        (self.by_token && refused).then_some(Awaited {
            since,
            shortest: self.rest,
            longest: LONG_REST,
        })
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
                ..Caching::shut(self.pending, format!("{}: its Job has no pod yet", self.what))
            },
            Standing::HeldUp(Hindrance { reason, message }) => Caching {
                job: Some(JobPhase::Pending),
                hindrance: Some(reason),
                held_up: Some(reason),
                ..Caching::shut(self.pending, format!("{} cannot begin: {message}", self.what))
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
