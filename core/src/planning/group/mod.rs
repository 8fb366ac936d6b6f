//! Which models of a group run, and which leave: one decision for the whole group, so that a swap
//! is one decision. The rules of leadership are those of local mode ([`crate::sharing`]); what is
//! added here is that everything is seen late and told to somebody else: gateways must have heard
//! that a model leaves before its pods do, and a newcomer starts when the old pods are gone.

mod failing;
mod leaving;
mod members;
mod replicas;
mod standing;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::effective::Effective;
use crate::ids::ModelId;
use crate::moment::Moment;
use crate::planning::model::{Demand, Engine, Expiry};
use crate::scaling::Activity;
use crate::sharing::{Capacity, Election, Member, elect, revisit_at};

pub use failing::Failed;
pub use standing::{Behind, Standing};

use members::{demanded, member};

/// One member of the group, as it was seen.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// What its Model means.
    pub model: &'a Effective,
    /// Its engine.
    pub engine: Engine,
    /// What gateways report.
    pub demand: &'a Demand,
    /// Something but its turn keeps it from being started: its spec, no node for it, no weights yet.
    pub obstructed: bool,
    /// Its Model is being deleted.
    pub deleted: bool,
    /// It has to go to sleep, whoever asks for it.
    pub evicted: bool,
    /// Since when it has been told to serve: engines may have taken one another's place since.
    pub serving_since: Option<Moment>,
    /// How long its last load took.
    pub last_load: Option<Duration>,
    /// What was remembered of it.
    pub record: Record,
}

/// What is remembered of a member from one decision to the next. Only comfort depends on it: a
/// controller that lost it decides alike, a drain or two later.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Since when it has been leaving, until nothing of it is left.
    pub draining: Option<Moment>,
    /// Who took the GPU from it, and when that was decided.
    pub preempted: Option<Preempted>,
    /// Why it was given up on.
    pub failed: Option<Failed>,
    /// Since when fewer replicas would have been enough.
    pub fewer_since: Option<Moment>,
    /// Its way to the GPU, from the decision until it leaves again.
    pub coming: Option<Coming>,
    /// Since when nodes with a copy of its weights in their memory are none that it may run on.
    pub unsuited: BTreeMap<String, Moment>,
}

/// A member's way to the GPU: how long each part of a swap took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coming {
    /// When the GPU was promised to it.
    pub decided: Moment,
    /// When everybody else had been told to go, with nothing in flight or at the drain limit.
    pub drained: Option<Moment>,
    /// When it was started: the others' pods were gone.
    pub started: Option<Moment>,
}

/// A swap, from the side of who had to leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preempted {
    /// The winner.
    pub by: ModelId,
    /// When it was decided.
    pub at: Moment,
}

/// What shall be with one member.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// How many replicas it shall have.
    pub replicas: u32,
    /// Its place in the group.
    pub standing: Standing,
    /// What to remember.
    pub record: Record,
    /// What it has to do, as it was counted.
    pub activity: Activity,
}

/// What shall be with the group.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// One for each candidate, in their order.
    pub verdicts: Vec<Verdict>,
    /// The next moment at which this can come out differently although nothing is reported.
    pub revisit: Option<Moment>,
}

/// Everything about a group, once it was counted.
struct Scene<'a> {
    candidates: &'a [Candidate<'a>],
    activities: Vec<Activity>,
    members: Vec<Member>,
    election: Election,
    /// Until when somebody else holds the GPU.
    lease: Option<Moment>,
    now: Moment,
}

/// Decides about a group of `candidates`. A GPU that is leased to somebody else, until `lease`, has
/// no leader.
pub fn decide(candidates: &[Candidate<'_>], lease: Option<Moment>, now: Moment) -> Plan {
    let lease = lease.filter(|until| now < *until);
    let activities: Vec<Activity> = candidates
        .iter()
        .map(|candidate| candidate.demand.activity(candidate.expiry(), now))
        .collect();
    let failures = failing::failures(candidates, &activities, now);
    let members: Vec<Member> = candidates
        .iter()
        .zip(&activities)
        .zip(&failures)
        .filter_map(|((candidate, activity), failed)| {
            member(candidate, *activity, failed.as_ref(), candidates)
        })
        .collect();
    let election =
        if lease.is_some() { Election::default() } else { elect(&members, Capacity::One, now) };
    let scene = Scene { candidates, activities, members, election, lease, now };
    let verdicts: Vec<Verdict> = candidates
        .iter()
        .zip(&scene.activities)
        .zip(failures)
        .map(|((candidate, activity), failed)| scene.verdict(candidate, *activity, failed))
        .collect();
    let revisit = scene.revisit(&verdicts);
    Plan { verdicts, revisit }
}

impl Coming {
    const fn decided(decided: Moment) -> Self {
        Self { decided, drained: None, started: None }
    }
}

impl Candidate<'_> {
    fn expiry(&self) -> Expiry {
        Expiry::of(self.model.idle_timeout)
    }

    fn up(&self) -> bool {
        self.engine.asked > 0
    }
}

impl Scene<'_> {
    fn verdict(
        &self,
        candidate: &Candidate<'_>,
        activity: Activity,
        failed: Option<Failed>,
    ) -> Verdict {
        let record = Record { failed, ..candidate.record.clone() };
        let wanted = !candidate.deleted && self.election.wants(&candidate.model.id);
        match (candidate.up(), wanted) {
            (true, true) => self.stays(candidate, activity, record),
            (true, false) => self.leaves(candidate, activity, record),
            (false, true) => self.comes(candidate, activity, record),
            (false, false) => self.rests(candidate, activity, record),
        }
    }

    /// It holds the GPU and goes on.
    fn stays(&self, candidate: &Candidate<'_>, activity: Activity, record: Record) -> Verdict {
        let (replicas, fewer_since) =
            replicas::wanted(candidate, &activity, record.fewer_since, self.now);
        let yielding = self.election.yielding.contains(&candidate.model.id);
        let standing = if yielding { Standing::Yielding } else { Standing::Holding };
        let record = Record { draining: None, preempted: None, fewer_since, ..record };
        Verdict { replicas, standing, record, activity }
    }

    /// It was elected and has no engine: it is started where nobody else's is left.
    fn comes(&self, candidate: &Candidate<'_>, activity: Activity, record: Record) -> Verdict {
        let others = || self.candidates.iter().filter(|other| other.model.id != candidate.model.id);
        let mut coming = record.coming.unwrap_or(Coming::decided(self.now));
        if !others().any(Candidate::up) {
            coming.drained = coming.drained.or(Some(self.now));
        }
        let in_place = others().filter(|other| other.engine.present).map(|other| &other.model.id);
        if let Some(left) = in_place.min() {
            let behind = Behind::Leaving(left.clone());
            let standing = Standing::Waiting { position: self.position(candidate), behind };
            let record = Record { coming: Some(coming), ..record };
            return Verdict { replicas: 0, standing, record, activity };
        }
        coming.started = Some(self.now);
        let (replicas, _) = replicas::wanted(candidate, &activity, None, self.now);
        let record = Record { coming: Some(coming), ..Record::default() };
        Verdict { replicas, standing: Standing::Holding, record, activity }
    }

    /// It was not elected and has no engine, or only what is left of one.
    fn rests(&self, candidate: &Candidate<'_>, activity: Activity, record: Record) -> Verdict {
        let preempted = record.preempted.clone().filter(|swap| self.still_there(&swap.by));
        let standing = if candidate.deleted {
            if candidate.engine.present { Standing::Leaving } else { Standing::Gone }
        } else if candidate.obstructed {
            Standing::Obstructed
        } else if let Some(until) = self.barred_until(&record) {
            Standing::Barred { until }
        } else if demanded(&activity) {
            let behind = self.lease.map_or_else(|| self.behind(candidate), Behind::Lease);
            Standing::Waiting { position: self.position(candidate), behind }
        } else if let Some(swap) = preempted.clone() {
            Standing::Preempted(swap)
        } else if candidate.engine.present {
            Standing::Leaving
        } else {
            Standing::Asleep
        };
        // What crossed the word to leave may be finished until the limit that counts from then.
        let draining = record.draining.filter(|_| candidate.engine.present);
        let record = Record { draining, preempted, fewer_since: None, coming: None, ..record };
        Verdict { replicas: 0, standing, record, activity }
    }

    fn barred_until(&self, record: &Record) -> Option<Moment> {
        record.failed.as_ref().map(|failed| failed.until).filter(|until| self.now < *until)
    }

    /// Whether the winner of a swap still has the GPU, or is to get it.
    fn still_there(&self, winner: &ModelId) -> bool {
        let up = |candidate: &Candidate<'_>| candidate.model.id == *winner && candidate.up();
        self.election.wants(winner) || self.candidates.iter().any(up)
    }

    /// The elected members that have no engine yet.
    fn newcomer(&self, but: &ModelId) -> Option<&ModelId> {
        let absent = |id: &&ModelId| {
            self.candidates.iter().any(|other| other.model.id == **id && !other.up())
        };
        self.election.residents.iter().filter(|id| *id != but).find(absent)
    }

    fn revisit(&self, verdicts: &[Verdict]) -> Option<Moment> {
        let later = |moment: &Moment| *moment > self.now;
        let own = self.candidates.iter().zip(verdicts).flat_map(|(candidate, verdict)| {
            let fewer = verdict.record.fewer_since.map(|since| since + replicas::PATIENCE);
            let barred = verdict.record.failed.as_ref().map(|failed| failed.until);
            let drain = leaving::leaving_moments(candidate, verdict);
            let hopeless = failing::gives_up_at(candidate, &verdict.activity);
            let demand = candidate.demand.expires_at(candidate.expiry(), self.now);
            drain.into_iter().chain([demand, fewer, barred, hopeless]).flatten()
        });
        own.chain(self.lease).chain(revisit_at(&self.members, self.now)).filter(later).min()
    }
}
