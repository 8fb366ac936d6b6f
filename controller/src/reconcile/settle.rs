//! One member made as it shall be: each part of it apart, so that one that is not written stands in no other's way,
//! and people are told in any case.

use std::collections::BTreeSet;

use flexinfer_core::ids::GroupId;
use flexinfer_core::moment::Moment;
use flexinfer_core::planning::model::Engine;
use flexinfer_core::planning::reconcile::{Finalizer, Wanted, WantedEngine};
use flexinfer_core::planning::writing::{Part, Writing};

use super::{Error, Reconciler, Wrote, both};
use crate::world::Member;

/// What became of the parts of one member in a pass.
struct Tries<'a> {
    member: &'a Member,
    writing: Writing,
    /// What was left alone.
    withheld: Vec<Part>,
    /// What was not written, for whatever reason.
    missed: BTreeSet<Part>,
    /// What that was, where it was no refusal.
    unfinished: Vec<Error>,
    now: Moment,
}

impl Tries<'_> {
    /// Takes note of what became of `part`. Only a lost lead ends the pass.
    fn note(&mut self, part: Part, result: Result<Wrote, Error>) -> Result<(), Error> {
        let error = match result {
            Err(Error::LeadLost) => return Err(Error::LeadLost),
            Err(error) => error,
            Ok(Wrote::Something) => {
                self.writing.take(part);
                return Ok(());
            }
            Ok(Wrote::Nothing) => {
                if !self.withheld.contains(&part) {
                    self.writing.rest(part);
                }
                return Ok(());
            }
        };
        tracing::warn!(model = %self.member.id, %error, "not written; once more later");
        self.missed.insert(part);
        let generation = self.member.model.metadata.generation;
        if let Some((why, said)) = error.trouble().filter(|_| part != Part::Status) {
            self.writing.refuse(part, (why, &said), generation, self.now);
            return Ok(());
        }
        if error.was_asked() {
            self.writing.fail(part, &error.said(), generation, self.now);
        }
        self.unfinished.push(error);
        Ok(())
    }

    fn missed(&self, part: Part) -> bool {
        self.missed.contains(&part)
    }

    /// Whether people have to be told something else than what was planned.
    fn news(&self) -> bool {
        self.writing.differs(&self.member.writing)
    }
}

impl Reconciler {
    /// Makes one member as it shall be, and says so. Where something was refused that was not before, or is no
    /// longer, the next pass says that. What else was not done is the answer.
    pub(super) async fn settle(
        &self,
        group: &GroupId,
        member: &Member,
        wanted: Wanted,
    ) -> Result<Vec<Error>, Error> {
        let (writing, missed) = (member.writing.clone(), BTreeSet::new());
        let (withheld, now) = (wanted.withheld.clone(), self.world.clock.now());
        let unfinished = Vec::new();
        let mut tries = Tries { member, writing, withheld, missed, unfinished, now };
        let result = Box::pin(self.make(member, wanted, &mut tries)).await;
        let news = tries.news();
        if let Some(moment) = tries.writing.next_try(now) {
            self.world.queue.wake_at(group.clone(), self.world.clock.instant(moment));
        }
        self.world.note_writing(&member.model, tries.writing);
        if news {
            self.world.queue.wake(group.clone());
        }
        result.map(|()| tries.unfinished)
    }

    async fn make(
        &self,
        member: &Member,
        wanted: Wanted,
        tries: &mut Tries<'_>,
    ) -> Result<(), Error> {
        if let Some(verdict) = &wanted.verdict {
            self.world.remember(&member.model, verdict.record.clone());
        }
        // Once a pass, or a second look would find nothing to do and forget what the first was refused.
        let goes = wanted.finalizer == Finalizer::Remove;
        if !goes {
            tries.note(Part::Finalizer, self.hold_on(member, wanted.finalizer).await)?;
        }
        let held = !tries.missed(Part::Finalizer);
        if held {
            tries.note(Part::Service, self.apply_service(member, wanted.service).await)?;
            tries.note(Part::Files, self.apply_files(member, wanted.files).await)?;
            tries.note(Part::Weights, self.take_step(member, wanted.caching).await)?;
            // Its pods would read files that are not there.
            let engine = if tries.missed(Part::Files) {
                wanted.engine.but_as_it_is(asked(member))
            } else {
                wanted.engine
            };
            self.make_engine(member, engine, tries).await?;
        }
        self.speeds.saw(member, wanted.measured.as_ref(), &wanted.status);
        self.metrics.saw(member, &wanted.status, wanted.verdict.as_ref());
        if !tries.news() && !tries.withheld.contains(&Part::Status) {
            let verdict = wanted.verdict.as_ref();
            let told = self.report(member, wanted.status, verdict, wanted.announcements).await;
            tries.note(Part::Status, told)?;
        }
        if held {
            let deleted = self.delete_jobs(member, wanted.outdated).await;
            let made = self.make_jobs(member, wanted.jobs).await;
            tries.note(Part::Jobs, both(deleted, made))?;
            let pruned = self.prune(member, wanted.leftovers).await;
            let released = self.release(member, wanted.released).await;
            tries.note(Part::Pods, both(pruned, released))?;
        }
        tries.note(Part::Moving, self.move_on(member, wanted.moving).await)?;
        if goes {
            tries.note(Part::Finalizer, self.let_go(member, wanted.finalizer).await)?;
        }
        Ok(())
    }

    async fn make_engine(
        &self,
        member: &Member,
        wanted: WantedEngine,
        tries: &mut Tries<'_>,
    ) -> Result<(), Error> {
        let parts: &[Part] = match &wanted {
            WantedEngine::AsItIs => &[],
            WantedEngine::Scaled(_) => &[Part::Replicas],
            WantedEngine::Tried { .. }
            | WantedEngine::Deployment(_)
            | WantedEngine::ScaledElsewhere { .. }
            | WantedEngine::Nothing => &[Part::Engine, Part::Replicas],
        };
        let Some((first, rest)) = parts.split_first() else { return Ok(()) };
        let made = self.apply_engine(member, wanted).await;
        // What was taken whole has its replicas as well.
        let whole = made.as_ref().map_or((&[][..], Wrote::Nothing), |wrote| (rest, *wrote));
        tries.note(*first, made)?;
        whole.0.iter().try_for_each(|part| tries.note(*part, Ok(whole.1)))
    }
}

/// How many replicas its Deployment is told to have.
fn asked(member: &Member) -> u32 {
    Engine::of(member.deployment.as_deref(), []).asked
}
