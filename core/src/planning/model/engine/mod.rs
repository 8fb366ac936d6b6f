//! What a model's Deployment and pods say about its engine.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod, PodCondition};

use flexinfer_crds::model::LoadingSubstage;

use super::Hindrance;
use super::hindrance::{hindrance, unmade};
use crate::moment::Moment;
use crate::planning::objects::{FETCH, is_apart};
use crate::planning::time::moment;

/// A model's engine, replicas taken together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Engine {
    /// How many replicas the Deployment is told to have.
    pub asked: u32,
    /// How many take requests.
    pub ready: u32,
    /// How many of those are set apart: others are started in their place.
    pub apart: u32,
    /// Whether anything of it may still hold a GPU: pods that end count, and so does a Deployment
    /// whose latest change nobody has acted on yet.
    pub present: bool,
    /// When the first of the ready replicas became ready.
    pub ready_since: Option<Moment>,
    /// When the oldest pod that is not ending was made.
    pub made: Option<Moment>,
    /// When the engine itself, after what has to run before it, first began.
    pub began: Option<Moment>,
    /// What holds up the load, the worst of all pods.
    pub hindrance: Option<Hindrance>,
    /// The same of further replicas, where one serves.
    pub lacking: Option<Hindrance>,
    /// How far the load is.
    pub substage: Option<LoadingSubstage>,
    /// The node of the first pod that has one; of one that is ending only where no other has.
    pub node: Option<String>,
}

impl Engine {
    /// What `deployment` and the model's `pods` amount to.
    pub fn of<'a>(
        deployment: Option<&Deployment>,
        pods: impl IntoIterator<Item = &'a Pod>,
    ) -> Self {
        let mut present: Vec<&Pod> = pods.into_iter().filter(|pod| !ended(pod)).collect();
        present.sort_by_key(|pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0));
        let staying: Vec<&Pod> = present.iter().copied().filter(|pod| !ending(pod)).collect();
        let ready: Vec<Moment> = staying.iter().filter_map(|pod| ready_since(pod)).collect();
        let asked = deployment.map_or(0, asked);
        let of_deployment = deployment.and_then(unmade);
        let of_pods = staying.iter().filter_map(|pod| hindrance(pod)).max();
        let serving = u32::try_from(ready.len()).unwrap_or(u32::MAX);
        // What is set apart serves, and another shall.
        let apart = staying.iter().filter(|pod| is_apart(pod) && self::ready(pod)).count();
        let lacks = ready.len() - apart < usize::try_from(asked).unwrap_or(usize::MAX);
        let worst = of_pods.max(of_deployment).filter(|_| lacks);
        let (hindrance, lacking) = if serving == 0 { (worst, None) } else { (None, worst) };
        Self {
            asked,
            ready: serving,
            apart: u32::try_from(apart).unwrap_or(u32::MAX),
            present: asked > 0 || !present.is_empty() || deployment.is_some_and(unsettled),
            ready_since: ready.into_iter().min(),
            made: staying
                .iter()
                .find_map(|pod| pod.metadata.creation_timestamp.as_ref().map(moment)),
            began: staying.iter().filter_map(|pod| began(pod)).min(),
            substage: staying.iter().find_map(|pod| substage(pod)),
            node: staying
                .iter()
                .chain(&present)
                .find_map(|pod| pod.spec.as_ref()?.node_name.clone()),
            hindrance,
            lacking,
        }
    }
}

/// The nodes of those `pods` that take requests, each once.
pub fn serving_nodes<'a>(pods: impl IntoIterator<Item = &'a Pod>) -> BTreeSet<&'a str> {
    let serve = pods.into_iter().filter(|pod| !ended(pod) && !ending(pod));
    let ready = serve.filter(|pod| ready_since(pod).is_some());
    ready.filter_map(|pod| pod.spec.as_ref()?.node_name.as_deref()).collect()
}

/// How many replicas a Deployment is told to have; Kubernetes' default is one.
fn asked(deployment: &Deployment) -> u32 {
    u32::try_from(deployment.spec.replicas.unwrap_or(1)).unwrap_or(0)
}

/// Whether the latest change of a Deployment may still make pods, or leave some.
fn unsettled(deployment: &Deployment) -> bool {
    let generation = deployment.metadata.generation;
    let status = deployment.status.as_ref();
    let seen = status.and_then(|status| status.observed_generation);
    let left = status.map_or(0, |status| {
        status.replicas.unwrap_or(0) + status.terminating_replicas.unwrap_or(0)
    });
    // A Deployment that never ran a pod has none to leave, seen or not.
    left > 0 || (seen < generation && generation > Some(1))
}

/// Its containers are gone for good.
pub(in crate::planning) fn ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

pub(in crate::planning) fn ending(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// A condition of a pod.
pub(super) fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<&'a PodCondition> {
    pod.status.as_ref()?.conditions.iter().flatten().find(|condition| condition.type_ == kind)
}

/// Whether it takes requests.
pub(in crate::planning) fn ready(pod: &Pod) -> bool {
    ready_since(pod).is_some()
}

fn ready_since(pod: &Pod) -> Option<Moment> {
    let ready = condition(pod, "Ready").filter(|ready| ready.status == "True")?;
    Some(ready.last_transition_time.as_ref().map_or(Moment::ORIGIN, moment))
}

/// The state of the container that serves: the first one.
fn serving(pod: &Pod) -> Option<&ContainerStatus> {
    let name = &pod.spec.as_ref()?.containers.first()?.name;
    pod.status.as_ref()?.container_statuses.iter().flatten().find(|status| status.name == *name)
}

fn began(pod: &Pod) -> Option<Moment> {
    let running = serving(pod)?.state.as_ref()?.running.as_ref()?;
    running.started_at.as_ref().map(moment)
}

fn substage(pod: &Pod) -> Option<LoadingSubstage> {
    if ready_since(pod).is_some() {
        return None;
    }
    let status = pod.status.as_ref()?;
    let mut first = status.init_container_statuses.iter().flatten();
    if let Some(first) = first.find(|container| container.state.as_ref().is_some_and(is_running)) {
        let fetches = first.name.starts_with(FETCH);
        let part =
            if fetches { LoadingSubstage::Downloading } else { LoadingSubstage::LoadingWeights };
        return Some(part);
    }
    let engine = serving(pod)?;
    let state = engine.state.as_ref()?;
    if is_running(state) {
        let answers = engine.started == Some(true);
        let loads = LoadingSubstage::LoadingWeights;
        return Some(if answers { LoadingSubstage::HealthCheckPending } else { loads });
    }
    let waiting = state.waiting.as_ref()?.reason.as_deref();
    (waiting == Some("ContainerCreating") && status.host_ip.is_some())
        .then_some(LoadingSubstage::ImagePulling)
}

fn is_running(state: &ContainerState) -> bool {
    state.running.is_some()
}

#[cfg(test)]
mod tests;
