//! The whole of one reconcile of a group, as a function: from everything that was observed to
//! everything that shall be written.

mod candidates;
mod going;
mod memory;
mod objects;
mod observed;
mod pressure;
mod progress;
mod wanted;
mod weights;
mod withholding;

#[cfg(test)]
mod tests;

use std::time::Duration;

use flexinfer_crds::Model;
use flexinfer_crds::model::ModelStatus;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Service;

use crate::moment::Moment;
use crate::planning::group::{Candidate, Plan as Decision, Standing, Verdict, decide};
use crate::planning::model::Engine;
use crate::planning::moving::Moving;
use crate::planning::pruning::pruning;
use crate::planning::status::{Announcement, Situation, announcements, status};
use crate::planning::time::moment;
use crate::planning::writing::Dispute;

pub use observed::{Observed, Seen};
pub use wanted::{Finalizer, Plan, Wanted, WantedEngine};

use memory::Memory;
use objects::{Drawn, draw};
use weights::Weights;
use withholding::{measured_or_not, obstructed, waits_for_weights, withhold};

/// How long a Model that is being deleted waits for its pods. Those of a lost node never end.
const DELETION_LIMIT: Duration = Duration::from_secs(50);

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
        let verdict = verdict.map(|verdict| drawn.memory.keep_in_mind(verdict));
        let (released, later) = going::released(observed, member, engine, verdict.as_ref());
        own.extend(later);
        let until = drawn.until;
        let all = Wanted { released, ..want(observed, member, drawn, engine, verdict) };
        let all = withhold(observed, member, engine, all);
        let moving = going::moved(observed, member, engine, (&all, until));
        wanted.push(Wanted { moving, ..all });
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
    let going = going::told_at(member, observed.now);
    let removed = drawn.memory.look_again(member, observed.now);
    waits.chain(
        [leftover, drawn.pressure.look_again, refused, over, going, removed].into_iter().flatten(),
    )
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
        weights: Weights { step, met, cache, substage, come, look_again: _ },
        endpoint,
        gpu,
        obstacle,
        unfilled,
        doubts,
        benchmarking,
        memory,
        pressure,
        until: _,
    } = drawn;
    let status = status(&Situation {
        model: member.model,
        group: Some(observed.group),
        obstacle: obstacle.as_ref(),
        unfilled: unfilled.as_ref(),
        doubts: &doubts,
        writing: member.writing,
        meddled: going::meddled(member, observed.now),
        name_conflict: member.name_conflict,
        engine,
        verdict: verdict.as_ref(),
        endpoint,
        gpu: gpu.map(|gpu| objects::on_device(gpu, observed, engine)),
        cached: met.as_ref(),
        cache: memory.status(cache),
        come: come.or_else(|| progress::of_engine(member, engine)),
        benchmark: measured_or_not(member, benchmarking.standing).as_ref(),
        measured: benchmarking.measured.as_ref(),
        caching: substage,
        kv_cache: pressure.status,
        now: observed.now,
    });
    let stays = deleted_at(member.model).is_none();
    let waits = engine.asked > 0 && waits_for_weights(&[obstacle, unfilled]);
    let aim = verdict.as_ref().filter(|_| !elsewhere || waits);
    let engine = wanted_engine(member, deployment.filter(|_| stays), engine, aim, waits);
    let (ended, jobs) = jobs(observed, member, &memory, benchmarking.job, verdict.as_ref());
    Wanted {
        id: member.id.clone(),
        finalizer: finalizer(member.model, ended),
        jobs,
        outdated: outdated(member, benchmarking.outdated),
        measured: benchmarking.measured,
        service: service(observed, member, verdict.as_ref()),
        files: files.filter(|_| stays),
        leftovers: pruning(member.pods.iter().copied(), observed.now).0,
        released: Vec::new(),
        moving: Moving::default(),
        caching: step.filter(|_| stays),
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
        None => {
            let benchmark = benchmark.map(|job| *job);
            (false, memory.missing(member).into_iter().chain(benchmark).collect())
        }
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

/// Jobs that are of no use any more, this `benchmark` among them. Those of a Model that goes, go with it.
fn outdated(member: &Seen<'_>, benchmark: Option<String>) -> Vec<String> {
    if deleted_at(member.model).is_some() {
        return Vec::new();
    }
    benchmark.into_iter().chain(memory::finished_cleanups(member)).collect()
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
