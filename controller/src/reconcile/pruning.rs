//! Pods that nobody needs any more, deleted.

use flexinfer_core::planning::pruning::Leftover;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Preconditions};

use super::apply::gone_is_well;
use super::{Error, Reconciler};
use crate::world::Member;

impl Reconciler {
    pub(super) async fn prune(
        &self,
        member: &Member,
        leftovers: Vec<Leftover>,
    ) -> Result<(), Error> {
        let pods: Api<Pod> = self.writer.api(&member.id);
        for Leftover { name, uid } in leftovers {
            tracing::info!(model = %member.id, pod = name, "a pod that failed is deleted");
            let only_it = Preconditions { uid: Some(uid), resource_version: None };
            let parameters = DeleteParams::default().preconditions(only_it);
            let write = pods.delete(&name, &parameters);
            let deleted = self.writer.guarded(format!("delete pod {name}"), write).await;
            match deleted {
                // Another pod of that name.
                Err(error) if error.is_conflict() => {}
                deleted => gone_is_well(deleted.map(drop))?,
            }
        }
        Ok(())
    }
}
