//! Engines on nodes that are about to be taken away: set apart, so that their Deployment makes others in their place,
//! and told to end once those serve.

use flexinfer_core::planning::moving::Moving;
use flexinfer_core::planning::objects::set_apart;
use flexinfer_core::planning::pruning::Leftover;
use flexinfer_core::planning::status::Announcement;
use flexinfer_crds::keys;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};

use super::apply::gone_is_well;
use super::{Error, Reconciler, Wrote};
use crate::world::Member;

impl Reconciler {
    pub(super) async fn move_on(
        &self,
        member: &Member,
        Moving { apart, over }: Moving,
    ) -> Result<Wrote, Error> {
        let wrote = Wrote::any(!apart.is_empty() || !over.is_empty());
        for pod in apart {
            self.set_apart(member, &pod).await?;
        }
        for pod in over {
            tracing::info!(model = %member.id, pod = pod.name, "a pod ends before its node does");
            self.delete_pod(member, pod, DeleteParams::default()).await?;
        }
        Ok(wrote)
    }

    async fn set_apart(&self, member: &Member, pod: &Leftover) -> Result<(), Error> {
        let pods: Api<Pod> = self.writer.api(&member.id);
        let patch = Patch::Merge(set_apart(&member.model, &pod.uid));
        let parameters = PatchParams {
            field_manager: Some(keys::FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let write = pods.patch(&pod.name, &parameters, &patch);
        let written = self.writer.guarded(format!("set pod {} apart", pod.name), write).await;
        if let Ok(written) = &written {
            self.world.wrote_pod(written.clone());
            let note = format!(
                "{} is about to be taken away; another engine is started in place of {}, which serves until then",
                node(member, pod).unwrap_or("its node"),
                pod.name
            );
            tracing::info!(model = %member.id, note, "a node goes");
            let told = Announcement { own: true, ..Announcement::new(false, "NodeLeaving", note) };
            self.writer.announce(&member.model, told).await;
        }
        gone_is_well(written.map(drop))
    }
}

/// The node of a pod.
fn node<'m>(member: &'m Member, pod: &Leftover) -> Option<&'m str> {
    let there = member.pods.iter().find(|known| known.metadata.name.as_ref() == Some(&pod.name));
    there?.spec.as_ref()?.node_name.as_deref()
}
