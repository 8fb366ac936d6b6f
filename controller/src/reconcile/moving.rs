//! Engines on nodes that are about to be taken away: set apart, so that their Deployment makes others in their place,
//! and told to end once those serve.

use std::sync::Arc;

use flexinfer_core::planning::moving::Moving;
use flexinfer_core::planning::objects::{given_back, set_apart};
use flexinfer_core::planning::pod::PodId;
use flexinfer_core::planning::status::Announcement;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch};
use kube::{Api, ResourceExt as _};
use serde_json::Value;

use super::apply::gone_is_well;
use super::{Error, Reconciler, Wrote};
use crate::author::signed;
use crate::world::Member;

impl Reconciler {
    /// One pod that is not written keeps none of the others where it is.
    pub(super) async fn move_on(
        &self,
        member: &Member,
        Moving { apart, back, over, at_once }: Moving,
    ) -> Result<Wrote, Error> {
        let wrote =
            Wrote::any([&apart, &back, &over, &at_once].iter().any(|pods| !pods.is_empty()));
        let mut done = Ok(());
        for pod in apart.iter().filter_map(|pod| known(member, pod)) {
            let note = format!(
                "{} is about to be taken away; another engine is started in place of {}, which goes on until then",
                node(pod),
                pod.name_any()
            );
            let patch = set_apart(&member.model, pod, member.deployment.as_deref());
            done = done.and(self.change(member, pod, patch, ("NodeLeaving", note)).await);
        }
        for pod in back.iter().filter_map(|pod| known(member, pod)) {
            let note = format!(
                "{} is not taken away after all; {} stays, and no other engine is started in its place",
                node(pod),
                pod.name_any()
            );
            done = done.and(self.change(member, pod, given_back(pod), ("NodeStaying", note)).await);
        }
        for pod in at_once {
            let note = format!(
                "{} is about to be taken away; {} ends, since another engine can be started only then",
                known(member, &pod).map_or("its node", node),
                pod.name
            );
            let deleted = self.delete_pod(member, pod, DeleteParams::default()).await;
            if matches!(deleted, Ok(true)) {
                self.tell(member, Announcement::new(true, "NodeLeaving", note)).await;
            }
            done = done.and(deleted.map(drop));
        }
        for pod in over {
            tracing::info!(model = %member.id, pod = pod.name, "a pod ends before its node does");
            done = done.and(self.delete_pod(member, pod, DeleteParams::default()).await.map(drop));
        }
        done.map(|()| wrote)
    }

    /// Writes whose a pod is, and tells why.
    async fn change(
        &self,
        member: &Member,
        pod: &Pod,
        patch: Value,
        (reason, note): (&str, String),
    ) -> Result<(), Error> {
        let (pods, name): (Api<Pod>, _) = (self.writer.api(&member.id), pod.name_any());
        let parameters = signed();
        let patch = Patch::Merge(patch);
        let write = pods.patch(&name, &parameters, &patch);
        let written = self.writer.guarded(format!("change whose pod {name} is"), write).await;
        if let Ok(written) = &written {
            self.world.wrote_pod(written.clone());
            self.tell(member, Announcement::new(false, reason, note)).await;
        }
        gone_is_well(written.map(drop))
    }

    async fn tell(&self, member: &Member, told: Announcement) {
        tracing::info!(model = %member.id, note = told.note, "a node goes, or stays after all");
        self.writer.announce(&member.model, Announcement { own: true, ..told }).await;
    }
}

/// The pod as it is known.
fn known<'m>(member: &'m Member, pod: &PodId) -> Option<&'m Pod> {
    let is_it = |known: &&Arc<Pod>| known.metadata.uid.as_ref() == Some(&pod.uid);
    member.pods.iter().find(is_it).map(AsRef::as_ref)
}

fn node(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or("its node")
}
