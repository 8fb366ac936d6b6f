//! How much of one member's weights has come, where a pod of it brings them now.

use flexinfer_crds::model::CacheProgress;
use k8s_openapi::api::core::v1::Pod;

use super::{Engine, Seen};
use crate::activation::Share;
use crate::planning::progress::{Told, asked_at, is_asked};
use crate::planning::time::moment;

/// What is known of one of `pods` that brings weights: what it said last, or what the status says as long as nobody
/// has asked.
pub(super) fn come(member: &Seen<'_>, pods: &[&Pod]) -> Option<Told> {
    let Some(known) = member.progress else {
        let bring = pods.iter().any(|pod| asked_at(pod).is_some());
        return remembered(member).filter(|_| bring);
    };
    pods.iter().any(|pod| is_asked(pod, known.pod())).then(|| known.told())
}

/// The same of the pods of an engine that loads.
pub(super) fn of_engine(member: &Seen<'_>, engine: &Engine) -> Option<Told> {
    come(member, &member.pods).filter(|_| engine.ready == 0)
}

/// What a status says that another controller may have written.
fn remembered(member: &Seen<'_>) -> Option<Told> {
    let status = member.model.status.as_ref()?;
    let CacheProgress { done_bytes, total_bytes } = status.cache.as_ref()?.progress?;
    let share = Share::new(done_bytes.try_into().ok()?, total_bytes.try_into().ok()?)?;
    let moved = moment(status.loading_progress_at.as_ref()?);
    Some(Told { share, moved, still: false })
}
