//! What a Model's status says, written only where it says something else, and the events of it.

use flexinfer_core::planning::group::Verdict;
use flexinfer_core::planning::status::Announcement;
use flexinfer_crds::Model;
use flexinfer_crds::model::ModelStatus;
use kube::api::Patch;
use kube::{Api, Resource as _, ResourceExt as _};
use serde_json::json;

use super::{Error, Reconciler, Wrote};
use crate::author::signed;
use crate::world::Member;

impl Reconciler {
    pub(super) async fn report(
        &self,
        member: &Member,
        status: ModelStatus,
        verdict: Option<&Verdict>,
        announcements: Vec<Announcement>,
    ) -> Result<Wrote, Error> {
        if member.model.status.as_ref() == Some(&status) {
            return Ok(Wrote::Nothing);
        }
        let models: Api<Model> = self.writer.api(&member.id);
        let name = member.model.name_any();
        let patch = Patch::Apply(json!({
            "apiVersion": Model::api_version(&()),
            "kind": Model::kind(&()),
            "metadata": { "name": name },
            "status": ours(status.clone()),
        }));
        let parameters = signed().force();
        let write = models.patch_status(&name, &parameters, &patch);
        let written = self.writer.guarded(format!("write the status of {name}"), write).await?;
        self.metrics.changed(member, &status, verdict);
        self.world.wrote_model(written);
        for announcement in announcements {
            self.writer.announce(&member.model, announcement).await;
        }
        Ok(Wrote::Something)
    }
}

/// The status without what others own.
fn ours(mut status: ModelStatus) -> ModelStatus {
    status.last_active_time = None;
    status.traffic = Vec::new();
    status
}
