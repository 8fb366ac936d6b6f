//! Pods that end and have nothing left to do. A pod that is told to go may finish what it serves for as long as its
//! model's drain limit, for its engine is not told before that is over; Kubernetes cannot know that nothing is left
//! earlier. Here is said which pods need that time no more, so that whoever waits for their GPU does not.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;

use super::group::Verdict;
use super::model::Engine;
use super::pod::PodId;
use super::time::moment;
use crate::moment::Moment;

#[cfg(test)]
mod crossing;
#[cfg(test)]
mod tests;

/// The seconds that a pod is left with once it has nothing to do; a kubelet lets its hook have them first, and then
/// gives the engine two more to end in.
pub const LAST: u32 = 1;

/// How long it takes on a busy cluster until gateways know that a pod ends, and what they have on it is known here.
const HEARING: Duration = Duration::from_secs(10);

/// How long a gateway may keep to itself that a model serves on which has been quiet.
const CALM: Duration = Duration::from_secs(10);

/// Who owns the pods, and what is known of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'a> {
    /// Its engine, replicas taken together.
    pub(crate) engine: &'a Engine,
    /// What shall be with it.
    pub(crate) verdict: &'a Verdict,
    /// How long it may finish what it serves.
    pub(crate) drain_limit: Duration,
    /// Somebody else says how many replicas there are, and drains nothing before.
    pub(crate) scaled_elsewhere: bool,
}

/// Which of `pods` are to wait no longer, and when the next one will be if nothing is reported until then.
pub(crate) fn releasing<'p>(
    pods: impl IntoIterator<Item = &'p Pod>,
    owner: Owner<'_>,
    now: Moment,
) -> (Vec<PodId>, Option<Moment>) {
    let (mut released, mut later) = (Vec::new(), None::<Moment>);
    for pod in pods {
        let due = ending_since(pod).and_then(|since| owner.released_at(since));
        let Some(due) = due else { continue };
        if now < due {
            later = Some(later.map_or(due, |known| known.min(due)));
        } else {
            released.extend(PodId::of(pod));
        }
    }
    (released, later)
}

impl Owner<'_> {
    /// When a pod that has been ending `since` then need not go on; `None` while that is not known.
    fn released_at(&self, since: Moment) -> Option<Moment> {
        let idle = self.verdict.activity.in_flight == 0;
        if self.engine.asked == 0 && !self.scaled_elsewhere {
            // It was drained before: gateways have given their word, or its time was over.
            let begun = self.verdict.record.draining;
            let over = begun.map(|begun| begun + self.drain_limit);
            return if idle { Some(since) } else { over };
        }
        // Nobody was told before. Gateways report at once what they have of a model that has no engine, and now and
        // then what they have of one that serves on.
        let heard = if self.engine.ready == 0 { HEARING } else { HEARING + CALM };
        idle.then_some(since + heard)
    }
}

/// Since when a pod ends that may still take longer than it has to.
fn ending_since(pod: &Pod) -> Option<Moment> {
    let until = moment(pod.metadata.deletion_timestamp.as_ref()?);
    let grace = u64::try_from(pod.metadata.deletion_grace_period_seconds?).ok()?;
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let ended = matches!(phase, Some("Succeeded" | "Failed"));
    let begun = until.since(Moment::ORIGIN).saturating_sub(Duration::from_secs(grace));
    (!ended && grace > u64::from(LAST)).then_some(Moment::ORIGIN + begun)
}
