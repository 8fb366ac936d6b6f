//! The whole of one reconcile of a group, as a function: from everything that was observed to
//! everything that shall be written.

mod candidates;
mod memory;
mod objects;
mod pressure;
mod weights;
mod withholding;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use flexinfer_crds::Model;
use flexinfer_crds::model::ModelStatus;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Service};

use crate::backends::Complaint;
use crate::effective::Effective;
use crate::ids::{GroupId, ModelId};
use crate::moment::Moment;
use crate::planning::benchmarking::Measured;
use crate::planning::caching::CacheStep;
use crate::planning::group::{Candidate, Plan as Decision, Record, Standing, Verdict, decide};
use crate::planning::model::{Demand, Engine};
use crate::planning::objects::{Adapters, Settings};
use crate::planning::placing::Cluster;
use crate::planning::pruning::{Leftover, pruning};
use crate::planning::releasing::{self, releasing};
use crate::planning::status::{
    Announcement, Obstacle, Situation, announcements, last_load, status,
};
use crate::planning::time::moment;
use crate::planning::writing::{Dispute, Part, Writing};

use memory::Memory;
use objects::{Drawn, draw};
use weights::Weights;
use withholding::{measured_or_not, obstructed, waits_for_weights, withhold};

/// How long a Model that is being deleted waits for its pods. Those of a lost node never end.
const DELETION_LIMIT: Duration = Duration::from_secs(50);

/// One model, as it was observed.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// Which model.
    pub id: &'a ModelId,
    /// Its Model.
    pub model: &'a Model,
    /// What its spec means, or what its last one did that meant something.
    pub effective: Option<&'a Effective>,
    /// What keeps the spec from meaning anything.
    pub complaints: &'a [Complaint],
    /// Its Deployment.
    pub deployment: Option<&'a Deployment>,
    /// Its engines' pods.
    pub pods: Vec<&'a Pod>,
    /// The Jobs that see to its weights.
    pub jobs: Vec<&'a Job>,
    /// The pods of those Jobs.
    pub job_pods: Vec<&'a Pod>,
    /// The LoRA adapters that its engines shall have.
    pub adapters: Adapters,
    /// What gateways report.
    pub demand: &'a Demand,
    /// Who else claims one of its names, in a sentence.
    pub name_conflict: Option<&'a str>,
    /// What of its objects was not taken.
    pub writing: &'a Writing,
    /// Who else writes them.
    pub dispute: Option<&'a Dispute>,
    /// What was remembered of it.
    pub record: Record,
}

/// A group, as it was observed.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    /// Which group.
    pub group: &'a GroupId,
    /// Its members.
    pub members: Vec<Seen<'a>>,
    /// Until when its GPU is leased to somebody else.
    pub lease: Option<Moment>,
    /// What is known of the cluster.
    pub cluster: Cluster<'a>,
    /// How full the fullest key-value cache of each node is, where that was measured.
    pub kv_cache_usage: &'a BTreeMap<String, f64>,
    /// The claims of the group's namespace, by name.
    pub claims: &'a BTreeMap<String, Arc<PersistentVolumeClaim>>,
    /// The ConfigMap of all benchmarks' results.
    pub results: &'a BTreeMap<String, String>,
    /// The controller's settings.
    pub settings: &'a Settings,
    /// Now.
    pub now: Moment,
}

/// What shall be written for one model, and remembered.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Which model.
    pub id: ModelId,
    /// Whether the Model shall be kept from vanishing before it is cleaned up.
    pub finalizer: Finalizer,
    /// The Service; `None` leaves what is there.
    pub service: Option<Service>,
    /// Files that the engine reads at its start.
    pub files: Option<ConfigMap>,
    /// The next step towards having its weights on their claim.
    pub caching: Option<CacheStep>,
    /// The Deployment.
    pub engine: WantedEngine,
    /// Jobs that stand in nobody's way: they measure the model, or clean up after it.
    pub jobs: Vec<Job>,
    /// How fast it is where it serves now.
    pub measured: Option<Measured>,
    /// Pods that nobody needs any more.
    pub leftovers: Vec<Leftover>,
    /// Pods that end and have nothing left to do: they need the time no more that they were given.
    pub released: Vec<Leftover>,
    /// The status.
    pub status: ModelStatus,
    /// What to tell about the change of status.
    pub announcements: Vec<Announcement>,
    /// Its place in the group; `None` where nothing could be decided.
    pub verdict: Option<Verdict>,
    /// What is left alone for now, since it was refused not long ago.
    pub withheld: Vec<Part>,
}

/// What shall be with the finalizer of a Model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finalizer {
    /// Put it there before anything is made.
    Add,
    /// It is as it shall be.
    Keep,
    /// Everything is cleaned up: let the Model go.
    Remove,
}

/// What shall be with the Deployment of a model.
#[derive(Clone, Debug, PartialEq)]
pub enum WantedEngine {
    /// It shall be like this, its `replicas` among it.
    Deployment(Box<Deployment>),
    /// It shall be like this; how many replicas it has while it runs is another autoscaler's to say.
    ScaledElsewhere {
        /// Without `replicas`.
        deployment: Box<Deployment>,
        /// What this controller sets all the same: from none to some, and from some to none.
        step: Option<u32>,
    },
    /// What runs stays as it is, with so many replicas: the spec cannot be followed now.
    Scaled(u32),
    /// It was refused before: whether it would be taken like this is to be found out, and nothing changed by that.
    Tried(Box<Deployment>),
    /// There is none to make.
    Nothing,
}

/// Everything that shall be written for a group.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// One for each member. Who gives up a GPU comes before who gets it.
    pub wanted: Vec<Wanted>,
    /// When to look again although nothing is reported.
    pub revisit: Option<Moment>,
}

/// Plans for everything that was `observed`.
pub fn plan(observed: &Observed<'_>) -> Plan {
    let drawn: Vec<Drawn> =
        observed.members.iter().map(|member| obstructed(member, draw(observed, member))).collect();
    let engines: Vec<Engine> =
        observed.members.iter().zip(&drawn).map(|(member, drawn)| engine(member, drawn)).collect();
    let decision = decided(observed, &drawn, &engines);
    let mut own: Vec<Moment> = observed
        .members
        .iter()
        .zip(&drawn)
        .flat_map(|(member, drawn)| looks_again(observed, member, drawn))
        .collect();
    let mut wanted: Vec<Wanted> = Vec::new();
    let mut verdicts = decision.verdicts.into_iter();
    for ((member, drawn), engine) in observed.members.iter().zip(drawn).zip(&engines) {
        // Those whose spec never meant anything have no place in the decision.
        let verdict = member.effective.and_then(|_| verdicts.next());
        let (released, later) = released(observed, member, engine, verdict.as_ref());
        own.extend(later);
        let all = Wanted { released, ..want(observed, member, drawn, engine, verdict) };
        wanted.push(withhold(observed, member, engine, all));
    }
    wanted.sort_by_key(|wanted| wanted.verdict.as_ref().map_or(0, |verdict| verdict.replicas));
    let deletions = observed
        .members
        .iter()
        .filter_map(|member| Some(deleted_at(member.model)? + DELETION_LIMIT));
    let later = deletions.filter(|moment| *moment > observed.now).min();
    let revisit = [decision.revisit, later].into_iter().flatten().chain(own).min();
    Plan { wanted, revisit }
}

/// When to look again for what a member has of its own.
fn looks_again(
    observed: &Observed<'_>,
    member: &Seen<'_>,
    drawn: &Drawn,
) -> impl Iterator<Item = Moment> {
    let waits = [drawn.weights.look_again, drawn.benchmarking.look_again];
    let waits = waits.into_iter().flatten().map(|wait| observed.now + wait);
    let (_, leftover) = pruning(member.pods.iter().copied(), observed.now);
    let refused = member.writing.next_try(observed.now);
    let over = member.dispute.map(Dispute::until).filter(|until| *until > observed.now);
    waits.chain([leftover, drawn.pressure.look_again, refused, over].into_iter().flatten())
}

fn engine(member: &Seen<'_>, drawn: &Drawn) -> Engine {
    if drawn.elsewhere {
        // Somebody else runs it; whether it answers is for gateways to find out.
        return Engine { asked: 1, ready: 1, ..Engine::default() };
    }
    Engine::of(member.deployment, member.pods.iter().copied())
}

fn decided(observed: &Observed<'_>, drawn: &[Drawn], engines: &[Engine]) -> Decision {
    let candidates: Vec<Candidate<'_>> = observed
        .members
        .iter()
        .zip(drawn)
        .zip(engines)
        .filter_map(|((member, drawn), engine)| {
            Some(candidates::candidate(member, member.effective?, drawn, engine))
        })
        .collect();
    decide(&candidates, observed.lease, observed.now)
}

/// Pods that need wait no longer, and when the next one will be.
fn released(
    observed: &Observed<'_>,
    member: &Seen<'_>,
    engine: &Engine,
    verdict: Option<&Verdict>,
) -> (Vec<Leftover>, Option<Moment>) {
    let (Some(verdict), Some(effective)) = (verdict, member.effective) else {
        return (Vec::new(), None);
    };
    let owner = releasing::Owner {
        engine,
        verdict,
        drain_limit: effective.drain_limit,
        scaled_elsewhere: objects::scaled_elsewhere(member),
    };
    releasing(member.pods.iter().copied(), owner, observed.now)
}

fn deleted_at(model: &Model) -> Option<Moment> {
    model.metadata.deletion_timestamp.as_ref().map(moment)
}

/// The Service; one that is being deleted keeps what it has.
fn service(
    observed: &Observed<'_>,
    member: &Seen<'_>,
    verdict: Option<&Verdict>,
) -> Option<Service> {
    let verdict = verdict.filter(|_| deleted_at(member.model).is_none())?;
    objects::service_of(observed, member, verdict)
}

fn announced(
    member: &Seen<'_>,
    status: &ModelStatus,
    verdict: Option<&Verdict>,
) -> Vec<Announcement> {
    let coming = verdict.and_then(|verdict| verdict.record.coming.as_ref());
    announcements(member.model.status.as_ref(), status, coming)
}

fn want(
    observed: &Observed<'_>,
    member: &Seen<'_>,
    drawn: Drawn,
    engine: &Engine,
    verdict: Option<Verdict>,
) -> Wanted {
    let Drawn {
        elsewhere,
        deployment,
        files,
        weights,
        endpoint,
        gpu,
        obstacle,
        unfilled,
        doubts,
        benchmarking,
        memory,
        pressure,
    } = drawn;
    let Weights { step, met, cache, substage, look_again: _ } = weights;
    let standing = measured_or_not(member, benchmarking.standing);
    let status = status(&Situation {
        model: member.model,
        group: Some(observed.group),
        obstacle: obstacle.as_ref(),
        unfilled: unfilled.as_ref(),
        doubts: &doubts,
        writing: member.writing,
        dispute: member.dispute,
        name_conflict: member.name_conflict,
        engine,
        verdict: verdict.as_ref(),
        endpoint,
        gpu: gpu.map(|gpu| objects::on_device(gpu, observed, engine)),
        cached: met.as_ref(),
        cache: memory.status(cache),
        benchmark: standing.as_ref(),
        measured: benchmarking.measured.as_ref(),
        caching: substage,
        kv_cache: pressure.status,
        now: observed.now,
    });
    let deleted = deleted_at(member.model);
    let deployment = deployment.filter(|_| deleted.is_none());
    let waits = engine.asked > 0 && waits_for_weights(&[obstacle, unfilled]);
    let aim = verdict.as_ref().filter(|_| !elsewhere || waits);
    let engine = wanted_engine(member, deployment, engine, aim, waits);
    let (ended, jobs) = jobs(observed, member, &memory, benchmarking.job, verdict.as_ref());
    Wanted {
        id: member.id.clone(),
        finalizer: finalizer(member.model, ended),
        jobs,
        measured: benchmarking.measured,
        service: service(observed, member, verdict.as_ref()),
        files: files.filter(|_| deleted.is_none()),
        leftovers: pruning(member.pods.iter().copied(), observed.now).0,
        released: Vec::new(),
        caching: step.filter(|_| deleted.is_none()),
        engine,
        announcements: announced(member, &status, verdict.as_ref()),
        status,
        verdict,
        withheld: Vec::new(),
    }
}

fn wanted_engine(
    member: &Seen<'_>,
    deployment: Option<Deployment>,
    engine: &Engine,
    verdict: Option<&Verdict>,
    waits: bool,
) -> WantedEngine {
    let Some(replicas) = verdict.map(|verdict| verdict.replicas) else {
        return WantedEngine::Nothing;
    };
    match deployment {
        _ if waits => objects::kept(member, replicas),
        Some(deployment) => objects::wanted(member, deployment, engine, replicas),
        None if member.deployment.is_some() => WantedEngine::Scaled(replicas),
        None => WantedEngine::Nothing,
    }
}

/// Whether a Model that is being deleted may go, and the Jobs that stand in nobody's way.
fn jobs(
    observed: &Observed<'_>,
    member: &Seen<'_>,
    memory: &Memory,
    benchmark: Option<Box<Job>>,
    verdict: Option<&Verdict>,
) -> (bool, Vec<Job>) {
    match deleted_at(member.model) {
        None => (false, benchmark.map(|job| *job).into_iter().collect()),
        Some(since) => ending(member, memory, verdict, observed.now >= since + DELETION_LIMIT),
    }
}

/// Whether a deleted Model may go, and the Jobs that clean up before: once no pod is left, or at its limit.
fn ending(
    member: &Seen<'_>,
    memory: &Memory,
    verdict: Option<&Verdict>,
    over: bool,
) -> (bool, Vec<Job>) {
    let gone = verdict.is_none_or(|verdict| verdict.standing == Standing::Gone);
    if over || !gone {
        return (over, Vec::new());
    }
    (memory.clean(member), memory.missing(member))
}

fn finalizer(model: &Model, cleaned_up: bool) -> Finalizer {
    let finalizers = model.metadata.finalizers.iter().flatten();
    let there = finalizers.into_iter().any(|known| known == flexinfer_crds::keys::MODEL_FINALIZER);
    match (deleted_at(model).is_some(), there) {
        (false, false) => Finalizer::Add,
        (true, true) if cleaned_up => Finalizer::Remove,
        _ => Finalizer::Keep,
    }
}
