//! What holds up a load, read from what Kubernetes says about pods and Deployments.

use std::cmp::Ordering;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use flexinfer_crds::conditions::{LoadHindrance, Outlook};

use super::engine::{condition, ended, ending};
use crate::planning::words::line;

/// Something that holds up a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hindrance {
    /// Which kind it is.
    pub reason: LoadHindrance,
    /// One line for people, in Kubernetes' or the engine's own words.
    pub message: String,
}

impl Hindrance {
    /// Whether waiting does not help.
    pub fn terminal(&self) -> bool {
        self.reason.outlook() == Outlook::Terminal
    }
}

/// The worse one is the greater: what waiting does not help against.
impl Ord for Hindrance {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |this: &Self| (this.terminal(), <&str>::from(this.reason));
        key(self).cmp(&key(other)).then_with(|| other.message.cmp(&self.message))
    }
}

impl PartialOrd for Hindrance {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The most that a message carries of somebody else's words, in characters.
const LONGEST: usize = 300;

/// What keeps those of `pods` from beginning that are there to stay, the worst of it: what a container does once it
/// has begun is for its end to say.
pub fn kept_from_beginning<'p>(pods: impl IntoIterator<Item = &'p Pod>) -> Option<Hindrance> {
    let failed = [LoadHindrance::InitContainerFailed, LoadHindrance::CrashLoop];
    let staying = pods.into_iter().filter(|pod| !ended(pod) && !ending(pod));
    staying.filter_map(hindrance).filter(|found| !failed.contains(&found.reason)).max()
}

/// What holds up the load of `pod`.
pub(super) fn hindrance(pod: &Pod) -> Option<Hindrance> {
    let status = pod.status.as_ref()?;
    let first = status.init_container_statuses.iter().flatten();
    let main = status.container_statuses.iter().flatten();
    let of_first = first
        .filter_map(|container| of_container(container, !is_sidecar(pod, &container.name)))
        .max();
    let of_main = main.filter_map(|container| of_container(container, false)).max();
    of_first.max(of_main).or_else(|| unschedulable(pod))
}

/// Whether an init container is one that runs beside the others: its end is no failure to begin.
fn is_sidecar(pod: &Pod, name: &str) -> bool {
    let containers = pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let mut named = containers.filter(|container| container.name == name);
    named.any(|container| container.restart_policy.as_deref() == Some("Always"))
}

/// That no node takes `pod`.
pub(in crate::planning) fn unschedulable(pod: &Pod) -> Option<Hindrance> {
    let scheduled = condition(pod, "PodScheduled").filter(|found| found.status == "False")?;
    if scheduled.reason.as_deref() != Some("Unschedulable") {
        return None;
    }
    let why = scheduled.message.as_deref().unwrap_or("no node takes the pod");
    Some(Hindrance { reason: LoadHindrance::Unschedulable, message: line(why, LONGEST) })
}

fn of_container(container: &ContainerStatus, first: bool) -> Option<Hindrance> {
    let state = container.state.as_ref()?;
    let hindrance =
        |reason, message: String| Some(Hindrance { reason, message: line(&message, LONGEST) });
    let name = &container.name;
    if let Some(waiting) = &state.waiting {
        let said = waiting.message.as_deref().unwrap_or_default();
        return match waiting.reason.as_deref()? {
            "ImagePullBackOff" | "ErrImagePull" | "InvalidImageName" | "ErrImageNeverPull" => {
                let message = format!("image {} cannot be pulled: {said}", container.image);
                hindrance(LoadHindrance::ImagePullFailed, message)
            }
            "CrashLoopBackOff" => {
                let reason = if first {
                    LoadHindrance::InitContainerFailed
                } else {
                    LoadHindrance::CrashLoop
                };
                let times = match container.restart_count {
                    0 => "once".to_owned(),
                    restarts => format!("{} times", restarts.saturating_add(1)),
                };
                let last = last_end(container);
                let kind = if first { "init container" } else { "container" };
                hindrance(reason, format!("{kind} {name} ended {times}; {last}"))
            }
            "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" => {
                // A Secret or ConfigMap may still come.
                let message = format!("container {name} cannot be made: {said}");
                hindrance(LoadHindrance::Provisioning, message)
            }
            _ => None,
        };
    }
    let failed = state.terminated.as_ref().filter(|end| end.exit_code != 0)?;
    if first {
        let said =
            end_in_words(failed.exit_code, failed.reason.as_deref(), failed.message.as_deref());
        let message = format!("init container {name} {said}");
        return hindrance(LoadHindrance::InitContainerFailed, message);
    }
    None
}

fn last_end(container: &ContainerStatus) -> String {
    let ended = container.last_state.as_ref().and_then(|state| state.terminated.as_ref());
    ended.map_or_else(
        || "how, nobody said".to_owned(),
        |end| {
            let said = end_in_words(end.exit_code, end.reason.as_deref(), end.message.as_deref());
            format!("at last it {said}")
        },
    )
}

fn end_in_words(code: i32, reason: Option<&str>, message: Option<&str>) -> String {
    let why = match reason {
        Some("OOMKilled") => format!("ran out of its memory limit (status {code})"),
        _ => format!("ended with status {code}"),
    };
    let last = message.and_then(|text| text.lines().rev().find(|line| !line.is_empty()));
    last.map_or(why.clone(), |last| format!("{why}: {}", last.trim()))
}

/// What keeps a Deployment from making its pods at all.
pub(in crate::planning) fn unmade(deployment: &Deployment) -> Option<Hindrance> {
    let conditions = deployment.status.as_ref()?.conditions.as_ref()?;
    let is = |text: &Option<String>, word| text.as_deref() == Some(word);
    let failure = conditions.iter().find(|found| is(&found.type_, "ReplicaFailure"))?;
    let said = failure.message.as_deref().unwrap_or_default();
    // Kubernetes names the reason `FailedCreate` whatever it was; quota says so in its message.
    let quota = said.contains("exceeded quota");
    let reason = if quota { LoadHindrance::QuotaExceeded } else { LoadHindrance::Provisioning };
    is(&failure.status, "True").then(|| Hindrance {
        reason,
        message: line(&format!("no pod can be made: {said}"), LONGEST),
    })
}
