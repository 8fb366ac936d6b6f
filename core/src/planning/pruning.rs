//! Pods of engines that have failed for good, such as those that a node threw out: Kubernetes makes others in
//! their place and keeps these until there are thousands.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;

use super::pod::PodId;
use super::time::moment;
use crate::moment::Moment;

/// How long a failed pod is kept, so that a person can look at it.
const KEPT: Duration = Duration::from_mins(5);

/// Which of `pods` are to go now, and when the next one will be.
pub fn pruning<'p>(
    pods: impl IntoIterator<Item = &'p Pod>,
    now: Moment,
) -> (Vec<PodId>, Option<Moment>) {
    let (mut over, mut later) = (Vec::new(), None::<Moment>);
    for pod in pods {
        let Some(due) = failed_at(pod).map(|at| at + KEPT) else { continue };
        if now < due {
            later = Some(later.map_or(due, |known| known.min(due)));
        } else {
            over.extend(PodId::of(pod));
        }
    }
    (over, later)
}

/// When a pod failed for good: when its last container ended, or when it was made, if it never had one.
fn failed_at(pod: &Pod) -> Option<Moment> {
    let status = pod.status.as_ref()?;
    if status.phase.as_deref() != Some("Failed") || pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses);
    let ends = containers.flatten().filter_map(|container| {
        container.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref()
    });
    let made = pod.metadata.creation_timestamp.as_ref();
    ends.chain(made).map(moment).max()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, status: Value) -> Pod {
        let made = "2026-01-01T00:00:00Z";
        let mut pod = json!({
            "metadata": { "name": name, "uid": format!("u-{name}"), "creationTimestamp": made },
        });
        pod["status"] = status;
        serde_json::from_value(pod).unwrap()
    }

    fn at(time: &str) -> Moment {
        let time = serde_json::from_value(json!(time)).unwrap();
        moment(&time)
    }

    fn names(over: &[PodId]) -> Vec<&str> {
        over.iter().map(|leftover| leftover.name.as_str()).collect()
    }

    #[test]
    fn a_pod_that_failed_is_kept_for_five_minutes_from_its_end() {
        let ended = pod(
            "ended",
            json!({ "phase": "Failed", "containerStatuses": [{
                "name": "model", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": { "terminated": { "exitCode": 1, "finishedAt": "2026-01-01T01:00:00Z" } },
            }] }),
        );
        let refused =
            pod("refused", json!({ "phase": "Failed", "reason": "UnexpectedAdmissionError" }));
        let pods = [ended, refused];
        let (over, later) = pruning(&pods, at("2026-01-01T00:04:59Z"));
        assert_eq!((over, later), (Vec::new(), Some(at("2026-01-01T00:05:00Z"))));
        let (over, later) = pruning(&pods, at("2026-01-01T00:05:00Z"));
        assert_eq!((names(&over), later), (vec!["refused"], Some(at("2026-01-01T01:05:00Z"))));
        let (over, later) = pruning(&pods, at("2026-01-01T02:00:00Z"));
        assert_eq!((names(&over), later), (vec!["ended", "refused"], None));
    }

    #[test]
    fn pods_that_run_wait_or_go_are_left_alone() {
        let mut going = pod("going", json!({ "phase": "Failed" }));
        going.metadata.deletion_timestamp = going.metadata.creation_timestamp.clone();
        let phases = ["Running", "Pending", "Succeeded"];
        let mut pods: Vec<Pod> =
            phases.iter().map(|phase| pod(phase, json!({ "phase": phase }))).collect();
        pods.push(going);
        assert_eq!(pruning(&pods, at("2027-01-01T00:00:00Z")), (Vec::new(), None));
    }
}
