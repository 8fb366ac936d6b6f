//! The Jobs that are made for Models. They end, and may go then.

use std::collections::BTreeSet;
use std::sync::Arc;

use flexinfer_core::ids::GroupId;
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt as _;

use super::Index;
use crate::world::news::Named as _;
use crate::world::objects::Kind;
use crate::world::owner::Owner;

impl Index {
    pub(in crate::world) fn see_job(&mut self, job: Job) -> Vec<GroupId> {
        self.see(job, |objects| &mut objects.jobs)
    }

    pub(in crate::world) fn wrote_job(&mut self, job: Job) {
        self.wrote(None, job, |objects| &mut objects.jobs);
    }

    pub(in crate::world) fn forget_job(&mut self, job: &Job) -> Vec<GroupId> {
        self.let_go(job);
        self.forget(job, |objects| &mut objects.jobs)
    }

    /// Forgets the Jobs that are not among those `listed` under namespace and name.
    pub(in crate::world) fn keep_jobs(
        &mut self,
        listed: &BTreeSet<(String, String)>,
    ) -> Vec<GroupId> {
        let known = self.objects.values().flat_map(|objects| objects.jobs.values());
        let gone = known.filter(|job| !listed.contains(&job.place())).map(Arc::clone);
        for job in gone.collect::<Vec<_>>() {
            self.let_go(&job);
        }
        self.keep(Kind::Job, listed)
    }

    /// A Job goes. One that has ended may be deleted by anybody who wants it done again.
    fn let_go(&mut self, job: &Job) {
        let model = Owner::of(job).and_then(|owner| self.models.get_mut(self.owners.get(&owner)?));
        if let Some(seen) = model.filter(|_| has_ended(job)) {
            seen.contests.remove(&(Kind::Job, job.name_any()));
        }
    }
}

fn has_ended(job: &Job) -> bool {
    let mut conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|one| ["Complete", "Failed"].contains(&&*one.type_) && one.status == "True")
}
