//! Pods that bring weights, and what they say of how much has come.

use std::net::SocketAddr;
use std::sync::Arc;

use flexinfer_core::activation::Share;
use flexinfer_core::ids::{GroupId, ModelId};
use flexinfer_core::moment::Moment;
use flexinfer_core::planning::progress::{Progress, asked_at, is_asked};
use k8s_openapi::api::core::v1::Pod;

use super::Index;
use crate::world::owner::Owner;

/// A pod that can be asked how far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bringer {
    /// Whose weights it brings.
    pub(crate) model: ModelId,
    /// Its uid.
    pub(crate) pod: String,
    /// Where it is asked.
    pub(crate) address: SocketAddr,
}

impl Index {
    /// One for each model that has any: where several bring the same, the one that was asked before.
    pub(in crate::world) fn bringers(&self) -> Vec<Bringer> {
        let of_model = |(id, seen): (&ModelId, &super::Seen)| {
            let objects = self.objects.get(&Owner::model(id))?;
            let all = || objects.job_pods.values().chain(objects.pods.values());
            let known = |pod: &&Arc<Pod>| {
                seen.progress.as_ref().is_some_and(|known| is_asked(pod, known.pod()))
            };
            let pod = all().find(known).or_else(|| all().find(|pod| asked_at(pod).is_some()))?;
            let (address, uid) = (asked_at(pod)?, pod.metadata.uid.clone()?);
            Some(Bringer { model: id.clone(), pod: uid, address })
        };
        self.models.iter().filter_map(of_model).collect()
    }

    /// What `pod` has said; nothing is looked at where the status would say the same.
    pub(in crate::world) fn note_progress(
        &mut self,
        id: &ModelId,
        pod: &str,
        share: Share,
        now: Moment,
    ) -> Vec<GroupId> {
        let Some(seen) = self.models.get_mut(id) else { return Vec::new() };
        let news = match &mut seen.progress {
            Some(known) if known.pod() == pod => known.hear(share, now),
            progress => {
                *progress = Some(Progress::begin(pod, share, now));
                true
            }
        };
        news.then(|| seen.meaning.group(id)).into_iter().collect()
    }
}
