//! The copies of a model's weights that nodes keep in their memory: where they are, and that they go with the
//! Model.

use flexinfer_crds::model::CacheStatus;
use k8s_openapi::api::batch::v1::Job;

use super::{Observed, Seen, deleted_at};
use crate::planning::objects::{Blueprint, Refusal};

/// The copies of one member.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The nodes that have one.
    nodes: Vec<String>,
    /// What removes them, once the Model is deleted.
    cleanups: Vec<Job>,
}

/// The copies of the member that `blueprint` draws. Those of nodes that are gone are gone too.
pub(super) fn copies(
    observed: &Observed<'_>,
    member: &Seen<'_>,
    blueprint: &Blueprint<'_>,
) -> Result<Memory, Refusal> {
    let mut nodes = remembered(member);
    if blueprint.keeps_in_memory()? {
        let of_pods = member.pods.iter().filter_map(|pod| pod.spec.as_ref()?.node_name.clone());
        nodes.extend(of_pods);
    }
    nodes.retain(|name| observed.cluster.nodes.iter().any(|node| node.name == *name));
    nodes.sort();
    nodes.dedup();
    let deleted = deleted_at(member.model).is_some();
    let cleanups = nodes.iter().filter_map(|node| blueprint.memory_cleanup_job(node));
    let cleanups = if deleted { cleanups.collect() } else { Vec::new() };
    Ok(Memory { nodes, cleanups })
}

/// The copies of a member that cannot be drawn.
pub(super) fn as_before(member: &Seen<'_>) -> Memory {
    Memory { nodes: remembered(member), cleanups: Vec::new() }
}

fn remembered(member: &Seen<'_>) -> Vec<String> {
    let cache = member.model.status.as_ref().and_then(|status| status.cache.as_ref());
    cache.map(|cache| cache.nodes.clone()).unwrap_or_default()
}

impl Memory {
    /// What the status says of the weights, with these copies.
    pub(super) fn status(&self, cache: Option<CacheStatus>) -> Option<CacheStatus> {
        if self.nodes.is_empty() {
            return cache;
        }
        Some(CacheStatus { nodes: self.nodes.clone(), ..cache.unwrap_or_default() })
    }

    /// The Jobs that have to be made yet.
    pub(super) fn missing(&self, member: &Seen<'_>) -> Vec<Job> {
        let cleanups = self.cleanups.iter().filter(|job| made(job, member).is_none());
        cleanups.cloned().collect()
    }

    /// Whether every Job has had its chance.
    pub(super) fn clean(&self, member: &Seen<'_>) -> bool {
        self.cleanups.iter().all(|job| made(job, member).is_some_and(ended))
    }
}

fn made<'j>(job: &Job, member: &Seen<'j>) -> Option<&'j Job> {
    member.jobs.iter().copied().find(|known| known.metadata.name == job.metadata.name)
}

fn ended(job: &Job) -> bool {
    let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut ends = conditions
        .filter(|one| ["Complete", "Failed"].contains(&&*one.type_) && one.status == "True");
    ends.next().is_some()
}
