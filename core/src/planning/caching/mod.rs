//! Getting a model's weights onto their claim before an engine is started: from what there is to the one next
//! step. A step is a claim or a Job to be made, or a Job to be deleted so that it can be made anew; nothing is
//! ever changed in place, since a Job's template cannot be (K8S-11).
//!
//! 1. The claim: made where the Model names none, grown but never shrunk ([`claim`]).
//! 2. The Job that fills it or looks at what is on it: done anew when its work is another, when it failed and
//!    something that matters has changed, or when it failed for a while that is over.
//! 3. The Job that makes the weights smaller, where the Model asks for that ([`quantizing`]).
//! 4. The gate opens.

mod claim;
mod exit;
mod job;
mod quantizing;
mod size;
mod task;
#[cfg(test)]
mod tests;

use std::time::Duration;

use flexinfer_crds::conditions::{ConditionReason, LoadHindrance};
use flexinfer_crds::model::{CacheStatus, JobPhase, LoadingSubstage, QuantizationStatus};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::jiff::Timestamp;

pub use claim::{ClaimChange, settled_claim};
use exit::Exit;

use super::objects::{Blueprint, ClaimUse, Filling, Held, Refusal, Work};
use super::progress::Told;
use quantizing::{outdated, quantizing};
use task::Task;

/// What there is on the cluster of a model's cache.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The claim that holds the weights, or shall hold them.
    pub claim: Option<&'a PersistentVolumeClaim>,
    /// The claim that they are copied from.
    pub source: Option<&'a PersistentVolumeClaim>,
    /// Since when the model has waited for its weights, by its status.
    pub awaited_since: Option<Timestamp>,
    /// The Job that fills the claim.
    pub job: Option<&'a Job>,
    /// The pods of that Job.
    pub pods: &'a [&'a Pod],
    /// The Job that makes the weights smaller.
    pub quantizer: Option<&'a Job>,
    /// The pods of that Job.
    pub quantizer_pods: &'a [&'a Pod],
    /// How much has come, as the pod of the Job says that runs.
    pub come: Option<Told>,
    /// The size that the status tells.
    pub size: Option<i64>,
    /// What the status says of weights that were made smaller.
    pub quantized: Option<&'a QuantizationStatus>,
    /// Whether claims of this class can grow, where that is known.
    pub can_grow: Option<bool>,
    /// The time.
    pub now: Timestamp,
}

/// Where the cache is, and what to do about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Caching {
    /// Whether an engine may be started.
    pub ready: bool,
    /// What to do now; `None` for nothing.
    pub step: Option<CacheStep>,
    /// The reason of the condition `Cached`, which is true when `ready`.
    pub reason: ConditionReason,
    /// One line for people.
    pub message: String,
    /// What those who wait for the model are told, where something holds it up.
    pub hindrance: Option<LoadHindrance>,
    /// What keeps the Job's pod from beginning, which is the condition's reason then.
    pub held_up: Option<LoadHindrance>,
    /// How the Job does.
    pub job: Option<JobPhase>,
    /// Its name.
    pub job_name: Option<String>,
    /// How far the weights are made smaller, and what came of it.
    pub quantization: Option<QuantizationStatus>,
    /// When to look again without anything having changed.
    pub look_again: Option<Duration>,
    /// The size of the weights in bytes, where what fetched them has said it.
    pub size: Option<i64>,
    /// Something that the Model asks for and cannot have, which keeps nothing else from going on.
    pub note: Option<String>,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum CacheStep {
    /// Make or grow the claim.
    Claim(Box<PersistentVolumeClaim>),
    /// Make the Job.
    Make(Box<Job>),
    /// Delete the Job of this name, and its pods with it (background propagation: K8S-13).
    Delete(String),
}

/// What to do next for the weights of the model of `blueprint`.
pub fn caching(blueprint: &Blueprint<'_>, seen: Seen<'_>) -> Result<Caching, Refusal> {
    let weights = blueprint.weights();
    let Held::Claim { name, made_by } = &weights.held else {
        let open = || Caching::open(ConditionReason::NoCacheJob, "no claim has to be filled");
        return Ok(outdated(seen, None).unwrap_or_else(open));
    };
    let (mut note, mut growth) = (None, None);
    let claim = match (seen.claim, made_by) {
        (None, ClaimUse::Made) => {
            let step = blueprint.claim().map(|claim| CacheStep::Claim(Box::new(claim)));
            let message = format!("the claim `{name}` is made");
            return Ok(Caching {
                step,
                ..Caching::shut(ConditionReason::PvcProvisioning, message)
            });
        }
        (None, ClaimUse::Named | ClaimUse::Source) => return Ok(missing(name)),
        (Some(claim), _) => claim,
    };
    if let Some(trouble) = trouble(name, claim) {
        return Ok(trouble);
    }
    if let (ClaimUse::Made, Some(wanted)) = (made_by, blueprint.claim()) {
        match settled_claim(wanted, claim, seen.can_grow) {
            ClaimChange::Keep => {}
            ClaimChange::Grow(claim) => growth = Some(CacheStep::Claim(claim)),
            ClaimChange::Cannot(why) => note = Some(why),
        }
    }
    if let Filling::ByJob(works) = &weights.filling
        && let Some(Work::Copy { claim: from, .. }) = works.first()
        && let Some(trouble) = source_trouble(from, seen.source)
    {
        return Ok(trouble);
    }
    let jobs = by_jobs(blueprint, claim.metadata.uid.as_deref().unwrap_or_default(), seen)?;
    if growth.is_some() {
        return Ok(growing(name, growth, jobs));
    }
    let note = note.or_else(|| unbound(name, claim).filter(|_| !jobs.ready));
    Ok(Caching { note, ..jobs })
}

/// The claim grows before it is filled. What is whole on it is used meanwhile, and if it may not grow.
fn growing(name: &str, step: Option<CacheStep>, jobs: Caching) -> Caching {
    let message = format!("the claim `{name}` grows");
    if jobs.ready {
        return Caching { step, note: Some(message), ..jobs };
    }
    Caching { step, ..Caching::shut(ConditionReason::PvcProvisioning, message) }
}

/// What to do next on the claim with this `uid`, which is as it shall be.
fn by_jobs(blueprint: &Blueprint<'_>, uid: &str, seen: Seen<'_>) -> Result<Caching, Refusal> {
    let weights = blueprint.weights();
    let quantizer = blueprint.quantizing_job(uid)?;
    if let Some(outdated) = outdated(seen, quantizer.as_ref()) {
        return Ok(outdated);
    }
    let Some(filler) = blueprint.filling_job(uid)? else {
        return Ok(Caching::open(ConditionReason::PvcBound, "the claim is there"));
    };
    let task = Task::filling(&weights.filling, others_claim(&weights.filling, seen));
    let filled = task.next(seen.job, seen.pods, filler, seen).with_progress(seen.come);
    // Pods may be gone long before the weights are.
    let size = seen.pods.iter().find_map(|pod| size::fetched(pod)).or(seen.size);
    let size = size.filter(|_| filled.ready);
    let caching = match (quantizer, &weights.quantized) {
        (Some(quantizer), Some(quantized)) if filled.ready => {
            quantizing(quantized, quantizer, seen)
        }
        _ => filled,
    };
    Ok(Caching { size, ..caching })
}

/// The claim whose content somebody else sees to, where that has to be there.
fn others_claim<'a>(filling: &Filling, seen: Seen<'a>) -> Option<&'a PersistentVolumeClaim> {
    match filling {
        Filling::Checked(_) => seen.claim,
        Filling::ByJob(works) if matches!(works.first(), Some(Work::Copy { .. })) => seen.source,
        _ => None,
    }
}

impl Caching {
    fn open(reason: ConditionReason, message: impl Into<String>) -> Self {
        Self { ready: true, ..Self::shut(reason, message) }
    }

    fn shut(reason: ConditionReason, message: impl Into<String>) -> Self {
        Self {
            ready: false,
            step: None,
            reason,
            message: message.into(),
            hindrance: None,
            held_up: None,
            job: None,
            job_name: None,
            quantization: None,
            look_again: None,
            size: None,
            note: None,
        }
    }

    /// The same with how much has come, while that is under way.
    fn with_progress(self, come: Option<Told>) -> Self {
        let Some(told) = come.filter(|_| self.job == Some(JobPhase::Running)) else { return self };
        Self { message: format!("{}: {told}", self.message), ..self }
    }

    /// What is under way, as a part of loading.
    pub fn substage(&self) -> Option<LoadingSubstage> {
        if self.job != Some(JobPhase::Running) {
            return None;
        }
        let quantizes = self.reason == ConditionReason::QuantizationRunning;
        let looks = self.reason == ConditionReason::CacheCheck;
        match (quantizes, looks) {
            (true, _) => Some(LoadingSubstage::Quantizing),
            (false, false) => Some(LoadingSubstage::Downloading),
            (false, true) => None,
        }
    }

    /// What the Model's status says of its cache.
    pub fn status(&self, blueprint: &Blueprint<'_>) -> CacheStatus {
        let weights = blueprint.weights();
        let claim = match &weights.held {
            Held::Claim { name, .. } => Some(name.clone()),
            _ => None,
        };
        CacheStatus {
            strategy: weights.strategy,
            ready: Some(self.ready),
            pvc_name: claim,
            job_name: self.job_name.clone(),
            job_phase: self.job,
            message: Some(self.message.clone()).filter(|message| !message.is_empty()),
            quantization: self.quantization.clone(),
            size_bytes: self.size,
            ..CacheStatus::default()
        }
    }
}

fn missing(name: &str) -> Caching {
    let message = format!("the claim `{name}` does not exist; make it, or name another");
    let hindrance = Some(LoadHindrance::BadSource);
    Caching { hindrance, ..Caching::shut(ConditionReason::PvcProvisioning, message) }
}

/// What is wrong with a claim that is there.
fn trouble(name: &str, claim: &PersistentVolumeClaim) -> Option<Caching> {
    if claim.metadata.deletion_timestamp.is_some() {
        let message = format!("the claim `{name}` is being deleted");
        let hindrance = Some(LoadHindrance::Provisioning);
        return Some(Caching {
            hindrance,
            ..Caching::shut(ConditionReason::PvcProvisioning, message)
        });
    }
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    (phase == Some("Lost")).then(|| {
        let message = format!("the claim `{name}` has lost its volume; make it anew");
        let hindrance = Some(LoadHindrance::BadSource);
        Caching { hindrance, ..Caching::shut(ConditionReason::PvcProvisioning, message) }
    })
}

/// What a Job waits for that cannot mount its claim. Some classes make a volume only then, so it is no trouble yet.
fn unbound(name: &str, claim: &PersistentVolumeClaim) -> Option<String> {
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    let class = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref());
    let class = class.map(|class| format!(" (class `{class}`)")).unwrap_or_default();
    (phase == Some("Pending")).then(|| format!("the claim `{name}`{class} has no volume yet"))
}

fn source_trouble(name: &str, claim: Option<&PersistentVolumeClaim>) -> Option<Caching> {
    let Some(claim) = claim else { return Some(missing(name)) };
    trouble(name, claim)
}
