//! What is remembered of a Model beside what the cluster says of it: what was decided, and what became of writes.

use flexinfer_core::ids::GroupId;
use flexinfer_core::moment::Moment;
use flexinfer_core::planning::group::Record;
use flexinfer_core::planning::writing::{Contest, Dispute, Writing};
use flexinfer_crds::Model;

use super::{Index, Seen};
use crate::world::news::id_of;
use crate::world::objects::Kind;

impl Index {
    /// What is known of this Model. A pass may end when another has its name by now, of which nothing was decided.
    fn same(&mut self, model: &Model) -> Option<&mut Seen> {
        let known = self.models.get_mut(&id_of(model));
        known.filter(|known| known.model.metadata.uid == model.metadata.uid)
    }

    pub(in crate::world) fn remember(&mut self, model: &Model, record: Record) {
        if let Some(seen) = self.same(model) {
            seen.record = record;
        }
    }

    pub(in crate::world) fn note_writing(&mut self, model: &Model, writing: Writing) {
        if let Some(seen) = self.same(model) {
            seen.writing = writing;
        }
    }

    pub(in crate::world) fn note_dispute(
        &mut self,
        model: &Model,
        dispute: Dispute,
    ) -> Vec<GroupId> {
        let Some(seen) = self.same(model) else { return Vec::new() };
        seen.dispute = Some(dispute);
        vec![seen.meaning.group(&id_of(model))]
    }

    pub(in crate::world) fn note_contest(
        &mut self,
        model: &Model,
        (kind, name): (Kind, &str),
        contest: Contest,
        now: Moment,
    ) {
        if let Some(seen) = self.same(model) {
            // Jobs have ever other names.
            seen.contests.retain(|(kind, _), known| *kind != Kind::Job || !known.is_over(now));
            seen.contests.insert((kind, name.to_owned()), contest);
        }
    }

    pub(in crate::world) fn forget_contest(&mut self, model: &Model, (kind, name): (Kind, &str)) {
        if let Some(seen) = self.same(model) {
            seen.contests.remove(&(kind, name.to_owned()));
        }
    }
}
