//! One member made as it shall be: each part of it apart, so that one that the API server refuses stands in no
//! other's way, and people are told in any case.

use std::collections::BTreeSet;

use flexinfer_core::ids::GroupId;
use flexinfer_core::moment::Moment;
use flexinfer_core::planning::reconcile::{Wanted, WantedEngine};
use flexinfer_core::planning::writing::{Part, Writing};

use super::{Error, Reconciler};
use crate::world::Member;

/// What became of the parts of one member in a pass.
struct Tries<'a> {
    member: &'a Member,
    writing: Writing,
    /// What was left alone.
    withheld: Vec<Part>,
    refused: BTreeSet<Part>,
    now: Moment,
}

impl Tries<'_> {
    /// Takes note of what became of `part`. Only what is no refusal ends the pass.
    fn note(&mut self, part: Part, result: Result<(), Error>) -> Result<(), Error> {
        let Err(error) = result else {
            if !self.withheld.contains(&part) {
                self.writing.take(part);
            }
            return Ok(());
        };
        let Some((why, said)) = error.trouble() else { return Err(error) };
        tracing::warn!(model = %self.member.id, %error, "refused; once more later");
        let generation = self.member.model.metadata.generation;
        self.writing.refuse(part, (why, &said), generation, self.now);
        self.refused.insert(part);
        Ok(())
    }

    /// Whether people have to be told something else than what was planned.
    fn news(&self) -> bool {
        self.writing.differs(&self.member.writing)
    }
}

impl Reconciler {
    /// Makes one member as it shall be, and says so. Where something was refused that was not before, or is no
    /// longer, the next pass says that.
    pub(super) async fn settle(
        &self,
        group: &GroupId,
        member: &Member,
        wanted: Wanted,
    ) -> Result<(), Error> {
        let (writing, refused) = (member.writing.clone(), BTreeSet::new());
        let (withheld, now) = (wanted.withheld.clone(), self.world.clock.now());
        let mut tries = Tries { member, writing, withheld, refused, now };
        let result = Box::pin(self.make(member, wanted, &mut tries)).await;
        let news = tries.news();
        if let Some(moment) = tries.writing.next_try(now) {
            self.world.queue.wake_at(group.clone(), self.world.clock.instant(moment));
        }
        self.world.note_writing(&member.id, tries.writing);
        if news {
            self.world.queue.wake(group.clone());
        }
        result
    }

    async fn make(
        &self,
        member: &Member,
        wanted: Wanted,
        tries: &mut Tries<'_>,
    ) -> Result<(), Error> {
        if let Some(verdict) = &wanted.verdict {
            self.world.remember(&wanted.id, verdict.record.clone());
        }
        tries.note(Part::Finalizer, self.hold_on(member, wanted.finalizer).await)?;
        let held = !tries.refused.contains(&Part::Finalizer);
        if held {
            tries.note(Part::Service, self.apply_service(member, wanted.service).await)?;
            tries.note(Part::Files, self.apply_files(member, wanted.files).await)?;
            tries.note(Part::Weights, self.take_step(member, wanted.caching).await)?;
            // Its pods would read files that are not there: the next pass leaves the engine as it is.
            if !tries.refused.contains(&Part::Files) {
                self.make_engine(member, wanted.engine, tries).await?;
            }
        }
        self.speeds.saw(member, wanted.measured.as_ref(), &wanted.status);
        self.metrics.saw(member, &wanted.status, wanted.verdict.as_ref());
        if !tries.news() {
            let verdict = wanted.verdict.as_ref();
            self.report(member, wanted.status, verdict, wanted.announcements).await?;
        }
        if held {
            tries.note(Part::Jobs, self.make_jobs(member, wanted.jobs).await)?;
            let pruned = self.prune(member, wanted.leftovers).await;
            let released = self.release(member, wanted.released).await;
            tries.note(Part::Pods, pruned.and(released))?;
        }
        tries.note(Part::Finalizer, self.let_go(member, wanted.finalizer).await)
    }

    async fn make_engine(
        &self,
        member: &Member,
        wanted: WantedEngine,
        tries: &mut Tries<'_>,
    ) -> Result<(), Error> {
        let parts: &[Part] = match &wanted {
            WantedEngine::Scaled(_) => &[Part::Replicas],
            WantedEngine::Tried(_) => &[Part::Engine],
            WantedEngine::Deployment(_)
            | WantedEngine::ScaledElsewhere { .. }
            | WantedEngine::Nothing => &[Part::Engine, Part::Replicas],
        };
        let Some((first, rest)) = parts.split_first() else { return Ok(()) };
        let made = self.apply_engine(member, wanted).await;
        // What was taken whole has its replicas as well.
        let whole = if made.is_ok() { rest } else { &[] };
        tries.note(*first, made)?;
        whole.iter().try_for_each(|part| tries.note(*part, Ok(())))
    }
}
