//! One step towards having a model's weights where its engine loads them, and Jobs of other kinds.

use flexinfer_core::planning::caching::CacheStep;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt as _};

use super::apply::gone_is_well;
use super::{Error, Reconciler, Wrote, both};
use crate::world::{Kind, Member};

impl Reconciler {
    /// One that is not taken keeps none of the others from being made.
    pub(super) async fn make_jobs(
        &self,
        member: &Member,
        wanted: Vec<Job>,
    ) -> Result<Wrote, Error> {
        let mut done = Ok(Wrote::Nothing);
        for job in wanted {
            done = both(done, self.make_job(member, &job).await);
        }
        done
    }

    async fn make_job(&self, member: &Member, wanted: &Job) -> Result<Wrote, Error> {
        let there = member.jobs.iter().find(|there| there.metadata.name == wanted.metadata.name);
        let written = self.put(member, Kind::Job, wanted, there.map(AsRef::as_ref)).await?;
        let Some(written) = written else { return Ok(Wrote::Nothing) };
        tracing::info!(model = %member.id, job = written.name_any(), "the Job was made");
        self.world.wrote_job(written);
        Ok(Wrote::Something)
    }

    pub(super) async fn take_step(
        &self,
        member: &Member,
        step: Option<CacheStep>,
    ) -> Result<Wrote, Error> {
        match step {
            None => Ok(Wrote::Nothing),
            Some(CacheStep::Claim(claim)) => {
                let claims: Api<PersistentVolumeClaim> = self.writer.api(&member.id);
                let name = claim.name_any();
                tracing::info!(model = %member.id, claim = name, "the claim is made or grows");
                // It is only made or grows, whoever made it as large as it is.
                let (written, _) = self.writer.apply(&claims, &*claim, None).await?;
                self.world.wrote_claim(written);
                Ok(Wrote::Something)
            }
            Some(CacheStep::Make(job)) => self.make_job(member, &job).await,
            Some(CacheStep::Delete(name)) => self.delete_job(member, &name).await,
        }
    }

    /// One that may not be deleted keeps none of the others there.
    pub(super) async fn delete_jobs(
        &self,
        member: &Member,
        outdated: Vec<String>,
    ) -> Result<Wrote, Error> {
        let mut done = Ok(Wrote::Nothing);
        for name in outdated {
            done = both(done, self.delete_job(member, &name).await);
        }
        done
    }

    pub(super) async fn delete_job(&self, member: &Member, name: &str) -> Result<Wrote, Error> {
        let jobs: Api<Job> = self.writer.api(&member.id);
        tracing::info!(model = %member.id, job = name, "the Job is deleted");
        // In the background its pods go with it; they would hold the claim otherwise.
        let background = DeleteParams::background();
        let write = jobs.delete(name, &background);
        let deleted = self.writer.guarded(format!("delete Job {name}"), write).await;
        self.world.forget_contest(&member.model, (Kind::Job, name));
        gone_is_well(deleted.map(drop)).map(|()| Wrote::Something)
    }
}
