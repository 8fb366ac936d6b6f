//! Pods that nobody needs any more, deleted; and those that end, told to wait no longer.

use flexinfer_core::planning::pod::PodId;
use flexinfer_core::planning::releasing::LAST;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Preconditions};

use super::apply::gone_is_well;
use super::{Error, Reconciler, Wrote};
use crate::world::Member;

impl Reconciler {
    /// One that may not be deleted keeps none of the others there.
    pub(super) async fn prune(
        &self,
        member: &Member,
        leftovers: Vec<PodId>,
    ) -> Result<Wrote, Error> {
        let wrote = Wrote::any(!leftovers.is_empty());
        let mut done = Ok(());
        for pod in leftovers {
            tracing::info!(model = %member.id, pod = pod.name, "a pod that failed is deleted");
            done = done.and(self.delete_pod(member, pod, DeleteParams::default()).await.map(drop));
        }
        done.map(|()| wrote)
    }

    /// Shortens the time that pods have which end already.
    pub(super) async fn release(
        &self,
        member: &Member,
        released: Vec<PodId>,
    ) -> Result<Wrote, Error> {
        let wrote = Wrote::any(!released.is_empty());
        let mut done = Ok(());
        for pod in released {
            tracing::info!(model = %member.id, pod = pod.name, "a pod that ends has nothing left to do");
            let soon = DeleteParams { grace_period_seconds: Some(LAST), ..DeleteParams::default() };
            done = done.and(self.delete_pod(member, pod, soon).await.map(drop));
        }
        done.map(|()| wrote)
    }

    /// Whether it ends by this: it may be gone already, or another may have its name.
    pub(super) async fn delete_pod(
        &self,
        member: &Member,
        PodId { name, uid }: PodId,
        parameters: DeleteParams,
    ) -> Result<bool, Error> {
        let pods: Api<Pod> = self.writer.api(&member.id);
        let only_it = Preconditions { uid: Some(uid), resource_version: None };
        let parameters = parameters.preconditions(only_it);
        let write = pods.delete(&name, &parameters);
        let deleted = self.writer.guarded(format!("delete pod {name}"), write).await;
        match deleted {
            Ok(deleted) => {
                if let Some(ends) = deleted.left() {
                    self.world.wrote_pod(ends);
                }
                Ok(true)
            }
            // Another pod of that name.
            Err(error) if error.is_conflict() => Ok(false),
            Err(error) => gone_is_well(Err(error)).map(|()| false),
        }
    }
}
