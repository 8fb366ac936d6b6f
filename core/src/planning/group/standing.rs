//! A member's place in its group, as people and gateways are told.

use super::{Candidate, Preempted, Scene};
use crate::ids::ModelId;
use crate::moment::Moment;
use crate::sharing::{Turn, turn};

/// A member's place in its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nobody asks for it.
    Asleep,
    /// It has the GPU, or is to start now.
    Holding,
    /// It finishes what it has and takes nothing new, because an equal waits.
    Yielding,
    /// It takes nothing new and leaves when it is done.
    Draining,
    /// It shall have no engine; what is left of one is not gone yet.
    Leaving,
    /// It shall run and waits.
    Waiting {
        /// 1 is next.
        position: u32,
        /// For what.
        behind: Behind,
    },
    /// Another took the GPU from it, and nobody asks for it.
    Preempted(Preempted),
    /// It could not start and is left alone for a while.
    Barred {
        /// Until when.
        until: Moment,
    },
    /// Something but its turn keeps it from being started.
    Obstructed,
    /// Its Model is being deleted and nothing of it is left.
    Gone,
}

/// What a waiting member waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behind {
    /// The GPU is promised to it; this one's pods are not gone yet.
    Leaving(ModelId),
    /// The GPU is leased to somebody else until then.
    Lease(Moment),
    /// It lost the election.
    Turn(Turn),
}

impl Scene<'_> {
    /// What keeps a member that lost the election from its turn.
    pub(super) fn behind(&self, candidate: &Candidate<'_>) -> Behind {
        let expected = |id: &ModelId| {
            let blocker = self.candidates.iter().find(|other| other.model.id == *id)?;
            Some((blocker.engine.made?, blocker.last_load?))
        };
        let id = &candidate.model.id;
        Behind::Turn(turn(&self.members, &self.election, id, expected, self.now))
    }

    /// Its place among those that wait, 1 for the next one: by priority, then who waited longest.
    pub(super) fn position(&self, candidate: &Candidate<'_>) -> u32 {
        let rank = |candidate: &Candidate<'_>| {
            let member = self.members.iter().find(|member| member.id == candidate.model.id)?;
            let wanted = self.election.wants(&member.id);
            let since = member.activity.waiting_since;
            if candidate.up() || !(wanted || since.is_some()) {
                return None;
            }
            Some((!wanted, -member.priority, since, member.id.clone()))
        };
        let own = rank(candidate);
        let before = self.candidates.iter().filter(|other| {
            rank(other).is_some_and(|other| own.as_ref().is_some_and(|own| other < *own))
        });
        u32::try_from(before.count()).unwrap_or(u32::MAX).saturating_add(1)
    }
}
