//! The fleet, and the endpoints of its models, handed on.

use std::collections::HashSet;
use std::sync::Arc;

use flexinfer_core::fleet::Fleet;
use flexinfer_core::ids::GroupId;

use super::Observer;
use crate::kubernetes::adapters::Moved;
use crate::kubernetes::endpoints::Owner;
use crate::kubernetes::external;
use crate::kubernetes::models::Engine;
use crate::kubernetes::orders::Dossier;
use crate::kubernetes::said::Said;

impl Observer {
    /// Publishes the fleet. Whose endpoints have to be listed then, since their pools are new.
    pub(super) fn publish(&mut self) -> Vec<Owner> {
        let fleet = Arc::new(self.models.fleet(self.adapters.listed()));
        self.served.metrics.know(fleet.listed().map(|served| served.name()));
        {
            let mut dossiers = self.served.dossiers.lock();
            dossiers.retain(|id, _| fleet.get(id).is_some());
            for id in fleet.all().map(|served| &served.effective.id) {
                let Some(engine) = self.models.engine(id) else { continue };
                let said = self.said.get(id).cloned().unwrap_or_default();
                let Said { last_active, entries, .. } = said;
                let engine = engine.clone();
                let backend = self.models.backend(id);
                let adapters = backend.map(|backend| self.adapters.asked(id, backend));
                dossiers.insert(id.clone(), Dossier { engine, adapters, last_active, entries });
            }
        }
        // Pools first: whoever finds a model in the fleet finds its pool.
        let new = self.served.pools.configure(Arc::clone(&fleet));
        self.served.fleet.store(Arc::clone(&fleet));
        self.counts.retain(|id, _| fleet.get(id).is_some());
        let ids = fleet.all().map(|served| &served.effective.id);
        self.owners = ids.map(|id| (Owner::of(id), id.clone())).collect();
        self.groups.clear();
        for effective in fleet.all().map(|served| &served.effective) {
            if matches!(effective.group, GroupId::Shared { .. }) {
                self.groups.entry(effective.group.clone()).or_default().push(effective.id.clone());
            }
        }
        self.follow_externals(&fleet);
        for id in &new {
            self.stand(id);
        }
        new.iter().map(Owner::of).collect()
    }

    fn follow_externals(&mut self, fleet: &Fleet) {
        let models = &self.models;
        self.externals.retain(|id, (launch, task)| {
            let stays =
                matches!(models.engine(id), Some(Engine::External(now)) if **now == *launch);
            if !stays {
                task.abort();
            }
            stays
        });
        for id in fleet.all().map(|served| &served.effective.id) {
            if let Some(Engine::External(launch)) = self.models.engine(id)
                && !self.externals.contains_key(id)
            {
                let pools = Arc::downgrade(&self.served.pools);
                let task = tokio::spawn(external::follow(pools, id.clone(), (**launch).clone()));
                self.externals.insert(id.clone(), ((**launch).clone(), task.abort_handle()));
            }
        }
    }

    pub(super) fn list(&mut self, owner: &Owner) {
        let Some(id) = self.owners.get(owner).cloned() else { return };
        if !matches!(self.models.engine(&id), Some(Engine::Listed(_))) {
            return;
        }
        let listed = self.endpoints.of(owner);
        let now: HashSet<_> = listed.iter().map(|listed| listed.id.clone()).collect();
        let before = self.counts.insert(id.clone(), now.clone()).unwrap_or_default();
        if let Some(served) = self.served.fleet.load().get(&id) {
            let series = self.served.metrics.model(served.name());
            for _ in now.difference(&before) {
                series.endpoint_changed(true);
            }
            for _ in before.difference(&now) {
                series.endpoint_changed(false);
            }
        }
        self.served.pools.act(&id, |pool, now| pool.list(now, listed));
    }

    /// Has the engines that are up load an adapter, or take it out. One that comes up meanwhile is asked by what was
    /// published before this.
    pub(super) fn tell_engines(&self, moved: &Moved) {
        let Some(backend) = self.models.backend(&moved.base) else { return };
        let fleet = self.served.fleet.load();
        let Some(served) = fleet.get(&moved.base) else { return };
        for listed in self.endpoints.of(&Owner::of(&moved.base)) {
            moved.asked(backend).ask(&self.served.adapters, served, listed.address).for_each(drop);
        }
    }
}
