//! The weights of one member: whether an engine may load them, and the next step towards that.

use std::time::Duration;

use flexinfer_crds::conditions::{ConditionReason, ConditionType, Outlook};
use flexinfer_crds::keys;
use flexinfer_crds::model::{CacheStatus, LoadingSubstage};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;

use super::{Observed, Seen, progress};
use crate::planning::caching::{self, CacheStep, Caching, caching};
use crate::planning::objects::{
    Blueprint, FILLER, Filling, Held, QUANTIZER, Refusal, Work, is_of_the_model_before,
};
use crate::planning::progress::Told;
use crate::planning::status::Obstacle;
use crate::planning::time::time;

/// What is known of a member's weights.
#[derive(Debug, Default)]
pub(super) struct Weights {
    /// What to do now.
    pub(super) step: Option<CacheStep>,
    /// Why an engine may load them, where one may.
    pub(super) met: Option<(ConditionReason, String)>,
    /// What the status says of them.
    pub(super) cache: Option<CacheStatus>,
    /// Which part of loading that is.
    pub(super) substage: Option<LoadingSubstage>,
    /// How much has come.
    pub(super) come: Option<Told>,
    /// When to look again although nothing changed.
    pub(super) look_again: Option<Duration>,
}

/// Looks at the weights of the member that `blueprint` draws. The obstacle is what keeps an engine
/// from being started.
pub(super) fn weights(
    observed: &Observed<'_>,
    member: &Seen<'_>,
    blueprint: &Blueprint<'_>,
) -> Result<(Weights, Option<Obstacle>), Refusal> {
    let job = member.jobs.iter().copied().find(|job| is_a(job, FILLER));
    let pods: Vec<&Pod> = pods_of(member, job).collect();
    let quantizer = member.jobs.iter().copied().find(|job| is_a(job, QUANTIZER));
    let quantizer_pods: Vec<&Pod> = pods_of(member, quantizer).collect();
    let status = member.model.status.as_ref().and_then(|status| status.cache.as_ref());
    let held = claim_of(observed, blueprint);
    if let Some(obstacle) = held.and_then(|held| somebody_elses(blueprint, member, held)) {
        return Ok((Weights::default(), Some(obstacle)));
    }
    let bring: Vec<&Pod> = pods.iter().chain(&quantizer_pods).copied().collect();
    let come = progress::come(member, &bring);
    let seen = caching::Seen {
        come,
        claim: held,
        source: source_of(blueprint).and_then(|name| claim(observed, name)),
        awaited_since: awaited_since(member),
        job,
        pods: &pods,
        quantizer,
        quantizer_pods: &quantizer_pods,
        size: status.and_then(|cache| cache.size_bytes),
        quantized: status.and_then(|cache| cache.quantization.as_ref()),
        can_grow: held.and_then(|claim| observed.cluster.can_grow(claim)),
        now: time(observed.now).0,
    };
    let now = caching(blueprint, seen)?;
    let cache = Some(now.status(blueprint)).filter(|_| held.is_some());
    let substage = now.substage();
    let Caching { ready, step, reason, message, hindrance, held_up, look_again, note, .. } = now;
    let message = [message].into_iter().chain(note).collect::<Vec<_>>().join("; ");
    let obstacle = (!ready).then(|| Obstacle {
        condition: ConditionType::Cached,
        reason: held_up.map_or_else(|| reason.into(), Into::into),
        message: message.clone(),
        lasting: hindrance.is_some_and(|found| found.outlook() == Outlook::Terminal),
    });
    let met = ready.then_some((reason, message));
    Ok((Weights { step, met, cache, substage, come, look_again }, obstacle))
}

/// That a claim has the name of the one that is made for the model, and is not the model's.
fn somebody_elses(
    blueprint: &Blueprint<'_>,
    member: &Seen<'_>,
    there: &PersistentVolumeClaim,
) -> Option<Obstacle> {
    let wanted = blueprint.claim()?;
    let of_model = |meta: &ObjectMeta| {
        let mut owners = meta.owner_references.iter().flatten();
        owners.any(|owner| Some(&owner.uid) == member.model.metadata.uid.as_ref())
    };
    if !of_model(&wanted.metadata) || of_model(&there.metadata) {
        return None;
    }
    let name = wanted.metadata.name.clone().unwrap_or_default();
    if is_of_the_model_before(&there.metadata, &wanted.metadata) {
        return Some(Obstacle {
            condition: ConditionType::Cached,
            reason: ConditionReason::PvcProvisioning.into(),
            message: format!("the claim `{name}` of the Model before is still being removed"),
            lasting: false,
        });
    }
    Some(Obstacle {
        condition: ConditionType::Cached,
        reason: ConditionReason::NameTaken.into(),
        message: format!(
            "there is a claim `{name}` already, which is not this Model's; to use it, write `cache.pvcName: {name}`, else give the Model another name"
        ),
        lasting: true,
    })
}

/// The claim that holds the weights of the model that `blueprint` draws, where there is one.
pub(super) fn claim_of<'a>(
    observed: &Observed<'a>,
    blueprint: &Blueprint<'_>,
) -> Option<&'a PersistentVolumeClaim> {
    match &blueprint.weights().held {
        Held::Claim { name, .. } => claim(observed, name),
        _ => None,
    }
}

fn claim<'a>(observed: &Observed<'a>, name: &str) -> Option<&'a PersistentVolumeClaim> {
    observed.claims.get(name).map(AsRef::as_ref)
}

/// Since when its weights have not been there, by its status.
fn awaited_since(member: &Seen<'_>) -> Option<Timestamp> {
    let conditions = member.model.status.iter().flat_map(|status| &status.conditions);
    let kind: &str = ConditionType::Cached.into();
    let mut awaited = conditions.filter(|found| found.type_ == kind && found.status == "False");
    awaited.next().map(|found| found.last_transition_time.0)
}

/// Whether a Job that was made for the model is this `component`.
pub(super) fn is_a(job: &Job, component: &str) -> bool {
    let labels = job.metadata.labels.as_ref();
    labels.and_then(|all| all.get(keys::COMPONENT)).is_some_and(|part| part == component)
}

/// The pods of `job`, by the label that Kubernetes gives them.
fn pods_of<'s>(member: &'s Seen<'_>, job: Option<&'s Job>) -> impl Iterator<Item = &'s Pod> {
    let name = job.and_then(|job| job.metadata.name.as_ref());
    member.job_pods.iter().copied().filter(move |pod| {
        let labels = pod.metadata.labels.as_ref();
        let of = labels.and_then(|all| all.get("batch.kubernetes.io/job-name"));
        name.is_some() && of == name
    })
}

/// The claim that weights are copied from.
fn source_of<'a>(blueprint: &'a Blueprint<'_>) -> Option<&'a str> {
    let Filling::ByJob(works) = &blueprint.weights().filling else { return None };
    match works.first()? {
        Work::Copy { claim, .. } => Some(claim),
        Work::Fetch { .. } => None,
    }
}
