//! Members that a group has no more: metrics tell nothing of them any longer, however they went.

use std::sync::Arc;

use flexinfer_core::ids::GroupId;

use super::Reconciler;
use crate::world::Member;

impl Reconciler {
    /// Ends what is told of those who were in `group` at the pass before, and are not among its `members` now.
    pub(super) fn miss_departed(&self, group: &GroupId, members: &[Member]) {
        let now = members.iter().map(|member| (member.id.clone(), Arc::clone(&member.model)));
        let mut seen = self.seen.lock();
        let before = seen.insert(group.clone(), now.collect());
        if members.is_empty() {
            seen.remove(group);
        }
        drop(seen);
        let departed = before.into_iter().flatten();
        for (id, model) in departed.filter(|(id, _)| members.iter().all(|known| known.id != *id)) {
            if self.world.knows(&id) {
                self.metrics.moved(&id, &model);
            } else {
                self.metrics.forget(&id, &model);
                self.speeds.forget(&id);
            }
        }
    }
}
