//! What people and gateways are told about a model: its status, and the events of what changed in
//! it. Only what the controller owns: `lastActiveTime` and `traffic` are the gateways'.

mod conditions;
mod events;
mod message;
mod phase;
mod pressure;
mod progress;

#[cfg(test)]
mod tests;

use std::time::Duration;

use flexinfer_crds::Model;
use flexinfer_crds::conditions::{ConditionReason, ConditionType};
use flexinfer_crds::model::{
    CacheStatus, GpuStatus, KvCacheStatus, LoadingSubstage, Metrics, ModelStatus, SharedGroupState,
    SharedGroupStatus,
};

pub use events::{Announcement, announcements};

use crate::ids::{GroupId, ModelId};
use crate::moment::Moment;
use crate::planning::benchmarking::Measured;
use crate::planning::group::{Behind, Preempted, Record, Standing, Verdict};
use crate::planning::model::Engine;
use crate::planning::placing::Doubt;
use crate::planning::progress::Told;
use crate::planning::time::{moment, time};
use crate::planning::writing::Writing;
use crate::sharing::Turn;

/// A foreseen moment that moves by less than this is not worth a write.
const FORESIGHT: Duration = Duration::from_secs(10);

/// Something that keeps a model from being started, whoever's turn it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The condition that is not met.
    pub condition: ConditionType,
    /// Its reason, a word of [`flexinfer_crds::conditions`].
    pub reason: &'static str,
    /// What is wrong and what to do.
    pub message: String,
    /// Whether it stays until somebody changes something.
    pub lasting: bool,
}

/// Everything that a model's status is made of.
#[derive(Clone, Debug)]
pub struct Situation<'a> {
    /// The Model, with the status it has.
    pub model: &'a Model,
    /// The group it is in; `None` where its spec means nothing.
    pub group: Option<&'a GroupId>,
    /// What keeps it from being started.
    pub obstacle: Option<&'a Obstacle>,
    /// What its author should know about where it may run.
    pub doubts: &'a [Doubt],
    /// What of its objects was not taken.
    pub writing: &'a Writing,
    /// What somebody else does to them: the reason of the condition and its message.
    pub meddled: Option<(ConditionReason, String)>,
    /// Who else claims one of its names, in a sentence.
    pub name_conflict: Option<&'a str>,
    /// Its engine.
    pub engine: &'a Engine,
    /// What was decided about it; `None` where nothing can be.
    pub verdict: Option<&'a Verdict>,
    /// The address inside the cluster under which it answers.
    pub endpoint: Option<String>,
    /// The GPU it runs on, as far as it is known.
    pub gpu: Option<GpuStatus>,
    /// Why an engine may load its weights, where that was looked at.
    pub cached: Option<&'a (ConditionReason, String)>,
    /// Why no engine may load the weights yet, where another obstacle comes before that.
    pub unfilled: Option<&'a Obstacle>,
    /// Where its weights are.
    pub cache: Option<CacheStatus>,
    /// What is done to have them there.
    pub caching: Option<LoadingSubstage>,
    /// How much of them has come, where a pod brings them now.
    pub come: Option<Told>,
    /// How measuring it stands, where the Model asks for that.
    pub benchmark: Option<&'a (ConditionReason, String)>,
    /// How fast it is where it serves now, if that was measured.
    pub measured: Option<&'a Measured>,
    /// How full its key-value cache is.
    pub kv_cache: Option<KvCacheStatus>,
    /// Now.
    pub now: Moment,
}

/// The status that a model shall have. Equal to the one it has, where nothing changed; what others
/// own is as they left it.
pub fn status(situation: &Situation<'_>) -> ModelStatus {
    let nothing = ModelStatus::default();
    let old = situation.model.status.as_ref().unwrap_or(&nothing);
    let phase = phase::phase(situation);
    let substage = substage(situation);
    ModelStatus {
        phase: Some(phase),
        message: Some(message::message(situation, phase)),
        conditions: conditions::conditions(situation),
        gpu: gpu(situation),
        endpoint: situation.endpoint.clone(),
        metrics: metrics(situation, old.metrics.as_ref()),
        shared_group: shared_group(situation),
        cache: progress::cache(situation),
        kv_cache: situation.kv_cache.clone(),
        loading_substage: substage,
        loading_progress_at: progress::at(situation, substage, old),
        ..old.clone()
    }
}

fn substage(situation: &Situation<'_>) -> Option<LoadingSubstage> {
    let engine = situation.engine;
    let loads = engine.asked > 0 && engine.ready == 0;
    let caches = situation.caching.filter(|_| engine.ready == 0);
    engine.substage.filter(|_| loads).or(caches)
}

fn gpu(situation: &Situation<'_>) -> Option<GpuStatus> {
    let node = situation.engine.node.clone();
    let known = situation.gpu.clone();
    let with_node = |gpu: GpuStatus| GpuStatus { node: node.clone(), ..gpu };
    known.map(with_node).filter(|gpu| *gpu != GpuStatus::default())
}

fn metrics(situation: &Situation<'_>, old: Option<&Metrics>) -> Option<Metrics> {
    let old = old.cloned().unwrap_or_default();
    let load_time_seconds = match load_time(situation.engine) {
        Some(took) => Some(format!("{:.1}", took.as_secs_f64())),
        None => old.load_time_seconds.clone(),
    };
    // What was measured stays true of where it was, while nobody serves.
    let (tokens_per_second, avg_latency_ms) = match situation.measured {
        Some(found) => (
            Some(format!("{:.1}", found.tokens_per_second)),
            found.latency_ms.map(|latency| format!("{latency:.0}")),
        ),
        None => (old.tokens_per_second, old.avg_latency_ms),
    };
    let metrics = Metrics { load_time_seconds, tokens_per_second, avg_latency_ms };
    (metrics != Metrics::default()).then_some(metrics)
}

/// How long the engine that serves took to load.
fn load_time(engine: &Engine) -> Option<Duration> {
    Some(engine.ready_since?.since(engine.made?))
}

/// How long the model's last load took, from its status.
pub fn last_load(status: Option<&ModelStatus>) -> Option<Duration> {
    let seconds = status?.metrics.as_ref()?.load_time_seconds.as_ref()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

fn shared_group(situation: &Situation<'_>) -> Option<SharedGroupStatus> {
    let verdict = situation.verdict?;
    let (state, position) = match &verdict.standing {
        Standing::Holding => (Some(SharedGroupState::Active), Some(0)),
        Standing::Yielding | Standing::Draining => (Some(SharedGroupState::Draining), Some(0)),
        Standing::Waiting { position, .. } => {
            (Some(SharedGroupState::Queued), i32::try_from(*position).ok())
        }
        Standing::Preempted(_) => (Some(SharedGroupState::Preempted), None),
        Standing::Asleep
        | Standing::Leaving
        | Standing::Barred { .. }
        | Standing::Obstructed
        | Standing::Gone => (None, None),
    };
    let preempted = verdict.record.preempted.as_ref();
    let place = SharedGroupStatus {
        group_name: None,
        state,
        queue_position: position,
        preempted_by: preempted.map(|swap| swap.by.name.to_string()),
        preempted_at: preempted.map(|swap| time(swap.at)),
        not_before: not_before(situation, &verdict.standing).map(time),
    };
    match situation.group? {
        GroupId::Shared { name, .. } => {
            Some(SharedGroupStatus { group_name: Some(name.to_string()), ..place })
        }
        // A model alone has no place among others; that it leaves is told in the same words.
        GroupId::Alone(_) => (state == Some(SharedGroupState::Draining))
            .then(|| SharedGroupStatus { state, ..SharedGroupStatus::default() }),
    }
}

/// The earliest turn of a model that waits. One that was told stays while it is about right: what a busy model will
/// do is foreseen anew at every look.
fn not_before(situation: &Situation<'_>, standing: &Standing) -> Option<Moment> {
    let Standing::Waiting { behind, .. } = standing else { return None };
    let (Behind::Turn(Turn::NotBefore(at)) | Behind::Lease(at)) = behind else { return None };
    let told = situation.model.status.as_ref().and_then(|status| status.shared_group.as_ref());
    let told = told.and_then(|place| place.not_before.as_ref()).map(moment);
    let near = |told: &Moment| at.since(*told).max(told.since(*at)) < FORESIGHT;
    Some(told.filter(|told| *told > situation.now).filter(near).unwrap_or(*at))
}

/// What a status lets a controller remember that has just begun.
pub fn remembered(id: &ModelId, status: Option<&ModelStatus>) -> Record {
    let place = status.and_then(|status| status.shared_group.as_ref());
    let Some(place) = place else { return Record::default() };
    let at = place.preempted_at.as_ref().map(moment);
    let preempted = place
        .preempted_by
        .as_ref()
        .zip(at)
        .map(|(by, at)| Preempted { by: ModelId::new(&id.namespace, by), at });
    let draining = at.filter(|_| place.state == Some(SharedGroupState::Draining));
    Record { draining, preempted, ..Record::default() }
}
