//! The copies of a model's weights that nodes keep in their memory: where they are, and that they go with the Model,
//! or earlier where it keeps none there any more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use flexinfer_crds::conditions::{ConditionReason, ConditionType};
use flexinfer_crds::model::CacheStatus;
use k8s_openapi::api::batch::v1::Job;

use super::weights::is_a;
use super::{Observed, Seen, deleted_at};
use crate::moment::Moment;
use crate::planning::group::{Record, Verdict};
use crate::planning::model::serving_nodes;
use crate::planning::objects::{
    self, Blueprint, MEMORY_CLEANUP, MEMORY_CLEANUP_LIMIT, Refusal, reads_kept_copy,
};
use crate::planning::placing::Offer;
use crate::planning::status::Obstacle;
use crate::planning::time::moment;
use crate::planning::writing::Part;

/// How long a node must have been none that the model may run on before its copy goes: labels and what a node offers are
/// away for a moment when whoever writes them starts anew. Of what is there with another value than the Model names, no
/// return is waited for.
const UNSUITED_FOR: Duration = Duration::from_secs(300);

/// The copies of one member.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Whether its pods leave any.
    keeps: bool,
    /// The nodes that have one.
    nodes: Vec<String>,
    /// Since when some of these are none that it may run on.
    unsuited: BTreeMap<String, Moment>,
    /// What removes those that nobody needs.
    cleanups: Vec<Job>,
}

/// The copies of the member that `blueprint` draws. Those of nodes that are gone are gone too.
pub(super) fn copies(
    observed: &Observed<'_>,
    member: &Seen<'_>,
    blueprint: &Blueprint<'_>,
) -> Result<Memory, Refusal> {
    let keeps = blueprint.keeps_in_memory()?;
    let readers = readers(member);
    let mut known: BTreeSet<String> = remembered(member).into_iter().collect();
    known.extend(readers.iter().map(|node| (*node).to_owned()));
    let deleted = deleted_at(member.model).is_some();
    let cleaned = if deleted { BTreeSet::new() } else { cleaned(member) };
    known.retain(|name| readers.contains(&**name) || !cleaned.contains(&**name));
    let there = observed.cluster.nodes.iter().filter(|node| known.contains(&node.name));
    let copies: Vec<&Offer> = there.collect();
    // Until it serves elsewhere, a node may hand on what it cannot use itself.
    let serves = !serving_nodes(member.pods.iter().copied()).is_empty();
    let idle = copies.iter().filter(|node| keeps && !readers.contains(&*node.name));
    let unsuited = idle.filter(|node| !blueprint.may_run_on(node));
    let since = |name: &String| member.record.unsuited.get(name).copied().unwrap_or(observed.now);
    let unsuited: BTreeMap<_, _> =
        unsuited.map(|node| (node.name.clone(), since(&node.name))).collect();
    let for_long = |node: &Offer| {
        let lasts = |since: &Moment| observed.now >= *since + UNSUITED_FOR;
        let since = unsuited.get(&node.name);
        since.is_some_and(|since| lasts(since) || blueprint.names_another_than(node))
    };
    let unneeded = |node: &Offer| {
        // A Job would wait there for as long as the node is away, and one more with each edit. The memory of a machine
        // that starts anew is empty.
        let left = !keeps && !readers.contains(&*node.name) || serves && for_long(node);
        deleted || (left && !node.unready)
    };
    let over = copies.iter().filter(|node| unneeded(node));
    let cleanups = over.filter_map(|node| blueprint.memory_cleanup_job(&node.name)).collect();
    let mut nodes: Vec<String> = copies.iter().map(|node| node.name.clone()).collect();
    nodes.sort();
    Ok(Memory { keeps, nodes, unsuited, cleanups })
}

/// The nodes from which a copy was removed, for whatever reason that was begun.
fn cleaned<'m>(member: &Seen<'m>) -> BTreeSet<&'m str> {
    let jobs = member.jobs.iter().copied().filter(|job| is_a(job, MEMORY_CLEANUP));
    jobs.filter(|job| is_complete(job)).filter_map(objects::node_of_cleanup).collect()
}

/// The nodes with pods that read a copy, or are to make one.
fn readers<'m>(member: &Seen<'m>) -> BTreeSet<&'m str> {
    let specs = member.pods.iter().filter_map(|pod| pod.spec.as_ref());
    specs
        .filter(|spec| reads_kept_copy(spec))
        .filter_map(|spec| spec.node_name.as_deref())
        .collect()
}

/// The copies of a member that cannot be drawn.
pub(super) fn as_before(member: &Seen<'_>) -> Memory {
    Memory { nodes: remembered(member), ..Memory::default() }
}

fn remembered(member: &Seen<'_>) -> Vec<String> {
    let cache = member.model.status.as_ref().and_then(|status| status.cache.as_ref());
    cache.map(|cache| cache.nodes.clone()).unwrap_or_default()
}

impl Memory {
    /// What was decided, with what has to be remembered of the copies.
    pub(super) fn keep_in_mind(&self, verdict: Verdict) -> Verdict {
        let record = Record { unsuited: self.unsuited.clone(), ..verdict.record };
        Verdict { record, ..verdict }
    }

    /// That a copy is just being removed of a model that keeps some again and has no engine that does: one that was
    /// started now could lose its weights to that.
    pub(super) fn in_the_way(&self, member: &Seen<'_>, now: Moment) -> Option<Obstacle> {
        self.removed_by(member, now).map(|_| Obstacle {
            condition: ConditionType::Cached,
            reason: ConditionReason::CacheNotReady.into(),
            message: "an older copy in the memory of a node is being removed".to_owned(),
            lasting: false,
        })
    }

    /// When nothing of that can be going on any more.
    fn removed_by(&self, member: &Seen<'_>, now: Moment) -> Option<Moment> {
        let keeping = member.deployment.is_some_and(|there| {
            let pod = there.spec.template.spec.as_ref();
            there.spec.replicas.unwrap_or(1) > 0 && pod.is_some_and(reads_kept_copy)
        });
        let removes = |job: &&Job| is_a(job, MEMORY_CLEANUP) && !ended(job);
        let jobs = member.jobs.iter().copied().filter(removes);
        let latest = jobs.map(|job| begun(job).unwrap_or(now) + MEMORY_CLEANUP_LIMIT).max();
        latest.filter(|latest| self.keeps && !keeping && *latest > now)
    }

    /// When something of this comes out differently although nothing has changed.
    pub(super) fn look_again(&self, member: &Seen<'_>, now: Moment) -> Option<Moment> {
        let unneeded = self.unsuited.values().map(|since| *since + UNSUITED_FOR);
        self.removed_by(member, now).into_iter().chain(unneeded).filter(|then| *then > now).min()
    }

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

    /// Whether every Job has had its chance. In a namespace that is being deleted none has any: what is left is
    /// removed by the nodes' agents.
    pub(super) fn clean(&self, member: &Seen<'_>) -> bool {
        member.writing.is_hopeless(Part::Jobs)
            || self.cleanups.iter().all(|job| made(job, member).is_some_and(ended))
    }
}

/// Jobs that have removed copies which the status does not name any more. They go, or the next copy on such a node would
/// seem to have been removed by its Job.
pub(super) fn finished_cleanups(member: &Seen<'_>) -> Vec<String> {
    let (named, readers) = (remembered(member), readers(member));
    let awaited = |job: &Job| {
        objects::node_of_cleanup(job)
            .is_some_and(|node| named.iter().any(|known| known == node) && !readers.contains(node))
    };
    let jobs = member.jobs.iter().copied().filter(|job| is_a(job, MEMORY_CLEANUP));
    let goes = |job: &&Job| job.metadata.deletion_timestamp.is_none() && is_complete(job);
    let gone = jobs.filter(|job| goes(job) && !awaited(job));
    gone.filter_map(|job| job.metadata.name.clone()).collect()
}

fn made<'j>(job: &Job, member: &Seen<'j>) -> Option<&'j Job> {
    member.jobs.iter().copied().find(|known| known.metadata.name == job.metadata.name)
}

fn begun(job: &Job) -> Option<Moment> {
    job.metadata.creation_timestamp.as_ref().map(moment)
}

fn ended(job: &Job) -> bool {
    is_complete(job) || has_come_to(job, "Failed")
}

fn is_complete(job: &Job) -> bool {
    has_come_to(job, "Complete")
}

fn has_come_to(job: &Job, end: &str) -> bool {
    let mut conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|one| one.type_ == end && one.status == "True")
}
