//! Making weights smaller, once they are on their claim: the Job, how far it is, and what came of it.

use flexinfer_crds::model::{JobPhase, QuantizationStatus};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerState, Pod};

use super::job::same_work;
use super::task::Task;
use super::{CacheStep, Caching, Seen};
use crate::planning::objects::Quantized;

/// A Job that makes what nobody wants any more, as a step that ends it; nothing is started beside it.
pub(super) fn outdated(seen: Seen<'_>, wanted: Option<&Job>) -> Option<Caching> {
    let job = seen.quantizer.filter(|job| job.metadata.deletion_timestamp.is_none())?;
    if wanted.is_some_and(|wanted| same_work(job, wanted)) {
        return None;
    }
    let task = Task::quantizing();
    let step = Some(CacheStep::Delete(job.metadata.name.clone().unwrap_or_default()));
    let message = "a Job makes weights that nobody wants any more; it is deleted";
    Some(Caching { step, ..Caching::shut(task.pending(), message) })
}

/// What to do next to have `quantized` made by the Job `wanted`.
pub(super) fn quantizing(quantized: &Quantized, wanted: Job, seen: Seen<'_>) -> Caching {
    let caching = Task::quantizing().next(seen.quantizer, seen.quantizer_pods, wanted, seen);
    let status = match caching.job {
        Some(JobPhase::Succeeded) => made(quantized, seen),
        Some(JobPhase::Running | JobPhase::Pending) => QuantizationStatus {
            progress: seen.come.map(|told| told.share.percent().min(99).into()),
            progress_detail: seen.quantizer_pods.iter().find_map(|pod| detail(pod, quantized)),
            ..quantized.status()
        },
        Some(JobPhase::Failed) | None => quantized.status(),
    };
    Caching { quantization: Some(status), ..caching }
}

/// What came of it: by the last words of the pod, and by the status when the pod is gone.
fn made(quantized: &Quantized, seen: Seen<'_>) -> QuantizationStatus {
    let words = seen.quantizer_pods.iter().find_map(|pod| {
        let ends = ends(pod).find(|end| end.exit_code == 0)?;
        Some(ends.message.clone().unwrap_or_default())
    });
    let known = seen.quantized.filter(|known| known.progress == Some(100));
    match (words, known) {
        (None, Some(known)) => known.clone(),
        (words, _) => quantized.outcome(words.as_deref()),
    }
}

fn states(pod: &Pod) -> impl Iterator<Item = &ContainerState> {
    let containers =
        pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    containers.filter_map(|container| container.state.as_ref())
}

fn ends(pod: &Pod) -> impl Iterator<Item = &k8s_openapi::api::core::v1::ContainerStateTerminated> {
    states(pod).filter_map(|state| state.terminated.as_ref())
}

/// What a pod does now, for people; nothing of one that has ended. Since when and for how long at most it works is all
/// that is known of how far it is, and neither has to be written again.
fn detail(pod: &Pod, quantized: &Quantized) -> Option<String> {
    if ends(pod).next().is_some() {
        return None;
    }
    let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()) else {
        return Some("its pod waits for a node".to_owned());
    };
    if let Some(reason) = states(pod).find_map(|state| state.waiting.as_ref()?.reason.clone()) {
        return Some(format!("its pod on {node} begins: {reason}"));
    }
    let since = states(pod).find_map(|state| state.running.as_ref()?.started_at.clone());
    let since = since.map(|time| format!(" since {}", time.0)).unwrap_or_default();
    let limit = quantized.limit() / 60;
    Some(format!("its pod works on {node}{since}; the Job may take {limit} minutes"))
}
