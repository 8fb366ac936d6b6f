//! How a model stands and who contends with it in its group, by what the controller and the gateways said.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use flexinfer_core::activation::{Stage, Standing};
use flexinfer_core::ids::{GroupId, ModelId};
use jiff::Timestamp;

use super::Observer;
use crate::kubernetes::models::Engine;
use crate::kubernetes::said::Said;

impl Observer {
    pub(super) fn stand(&self, id: &ModelId) {
        let Some(said) = self.said.get(id) else { return };
        if let Some(dossier) = self.served.dossiers.lock().get_mut(id) {
            dossier.last_active = said.last_active;
            dossier.entries.clone_from(&said.entries);
        }
        // How an external engine stands, its follower finds out.
        if matches!(self.models.engine(id), Some(Engine::Listed(_))) {
            let (held_by, stage) = (self.holder(id), self.stage(id, said));
            let standing = Standing { held_by, stage, ..said.standing.clone() };
            let ahead = |moment: Timestamp| moment.duration_since(Timestamp::now()).try_into().ok();
            let ahead: Option<Duration> = said.not_before.and_then(ahead);
            self.served.pools.act(id, |pool, now| {
                pool.stand(now, Standing { not_before: ahead.map(|ahead| now + ahead), ..standing })
            });
        }
    }

    /// What those who wait for a model wait for, by what is said of its group.
    fn stage(&self, id: &ModelId, said: &Said) -> Stage {
        let stage = said.standing.stage;
        if said.not_before.is_some() {
            return stage;
        }
        let fleet = self.served.fleet.load();
        let group = fleet.get(id).and_then(|served| self.groups.get(&served.effective.group));
        let others = group.into_iter().flatten().filter(|other| *other != id);
        stage.among(others.filter_map(|other| Some(self.said.get(other)?.place())))
    }

    pub(super) fn concerned_groups(&self, ids: &BTreeSet<ModelId>) -> HashSet<GroupId> {
        let fleet = self.served.fleet.load();
        let group = |id| Some(fleet.get(id)?.effective.group.clone());
        ids.iter().filter_map(group).filter(|group| self.groups.contains_key(group)).collect()
    }

    /// Whoever keeps another member of its group waiting reports at once, and those who wait learn who
    /// holds the GPU.
    pub(super) fn contend(&self, group: &GroupId) {
        let members = self.groups.get(group).map(Vec::as_slice).unwrap_or_default();
        let wanted = |id: &ModelId| self.said.get(id).is_some_and(|said| said.wanted);
        let all = members.iter().filter(|id| wanted(id)).count();
        for id in members {
            let others = all - usize::from(wanted(id));
            self.served.pools.act(id, |pool, now| pool.contend(now, others > 0));
            self.stand(id);
        }
    }

    /// The member of its group that keeps `id` from the GPU whatever happens: it has it, a higher
    /// priority, and no idle timeout.
    fn holder(&self, id: &ModelId) -> Option<ModelId> {
        let fleet = self.served.fleet.load();
        let own = &fleet.get(id)?.effective;
        let holds = |other: &&ModelId| {
            let Some(served) = fleet.get(other).filter(|_| *other != id) else { return false };
            let stays = served.effective.min_replicas > 0 || served.effective.force_promotion;
            let higher = served.effective.priority > own.priority;
            stays && higher && self.said.get(*other).is_some_and(|said| said.holds)
        };
        self.groups.get(&own.group)?.iter().find(holds).cloned()
    }
}
