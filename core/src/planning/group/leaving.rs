//! How a member leaves: it is told to gateways first, finishes what it serves, and then goes.

use std::time::Duration;

use super::{Candidate, Preempted, Record, Scene, Standing, Verdict};
use crate::moment::Moment;
use crate::scaling::Activity;

/// How long a gateway that says nothing is waited for before what it said last counts.
///
/// Longer than a busy cluster takes to tell it and to be told: what such a gateway has in flight may be more than it
/// last said, and would be cut off.
const HEARING: Duration = Duration::from_secs(10);

/// How long the first word is waited for of gateways that never had anything of a model: such a one may have given it
/// its first request before it read that it leaves, and until it says so nobody knows that it is there.
const FIRST_WORD: Duration = Duration::from_secs(1);

impl Scene<'_> {
    /// It has an engine and was not elected.
    pub(super) fn leaves(
        &self,
        candidate: &Candidate<'_>,
        activity: Activity,
        record: Record,
    ) -> Verdict {
        let since = record.draining.unwrap_or(self.now);
        let newcomer = self.newcomer(&candidate.model.id);
        let preempted = match (record.preempted.clone(), newcomer) {
            (Some(swap), _) if self.still_there(&swap.by) => Some(swap),
            (_, Some(by)) => Some(Preempted { by: by.clone(), at: self.now }),
            (_, None) => None,
        };
        let serves = candidate.engine.ready > 0;
        let record = Record { draining: Some(since), preempted, fewer_since: None, ..record };
        if serves && !self.done(candidate, &activity, since) {
            let replicas = candidate.engine.asked;
            return Verdict { replicas, standing: Standing::Draining, record, activity };
        }
        self.rests(candidate, activity, record)
    }

    /// Whether nothing is left to wait for. Being deleted or in the way has a limit; a model that
    /// goes to sleep has nothing in flight.
    fn done(&self, candidate: &Candidate<'_>, activity: &Activity, since: Moment) -> bool {
        if self.now >= since + candidate.model.drain_limit {
            return true;
        }
        let heard = candidate.demand.all_promised_since(since) || self.now >= since + HEARING;
        activity.in_flight == 0 && heard && self.now >= since + FIRST_WORD
    }
}

/// The moments at which a member that leaves does so by itself.
pub(super) fn leaving_moments(candidate: &Candidate<'_>, verdict: &Verdict) -> [Option<Moment>; 3] {
    let since = verdict.record.draining.filter(|_| verdict.standing == Standing::Draining);
    [FIRST_WORD, HEARING, candidate.model.drain_limit].map(|wait| since.map(|since| since + wait))
}
