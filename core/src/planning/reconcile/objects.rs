//! The objects of one member, or what keeps them from being drawn.

use flexinfer_crds::conditions::{ConditionReason, ConditionType};
use flexinfer_crds::model::{GpuStatus, Vendor as Named};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};

use super::memory::{Memory, as_before, copies};
use super::pressure::{as_reconfigured, pressed};
use super::weights::{Weights, claim_of, weights};
use super::{Engine, Observed, Seen, WantedEngine};
use crate::backends::{Backend, Complaint, Config, Vendor};
use crate::ids::GroupId;
use crate::placement::benchmarks::DeviceClass;
use crate::planning::benchmarking::{self, Benchmarking, benchmarking};
use crate::planning::group::{Standing, Verdict};
use crate::planning::model::serving_nodes;
use crate::planning::moving::Until;
use crate::planning::objects::{Blueprint, Refusal, Serving, names, service, spec_hash};
use crate::planning::placing::{Doubt, Placed, Placement, Settled, place};
use crate::planning::pressure::Pressure;
use crate::planning::status::Obstacle;

/// What could be drawn of a member.
#[derive(Default)]
pub(super) struct Drawn {
    /// Somebody else runs the engine.
    pub(super) elsewhere: bool,
    /// Without `replicas`.
    pub(super) deployment: Option<Deployment>,
    pub(super) files: Option<ConfigMap>,
    pub(super) weights: Weights,
    pub(super) endpoint: Option<String>,
    pub(super) gpu: Option<GpuStatus>,
    pub(super) obstacle: Option<Obstacle>,
    /// That its weights are not there, whatever else is in its way.
    pub(super) unfilled: Option<Obstacle>,
    pub(super) doubts: Vec<Doubt>,
    pub(super) benchmarking: Benchmarking,
    pub(super) memory: Memory,
    pub(super) pressure: Pressure,
    /// What has to be before an engine ends in whose place one of this `deployment` shall serve.
    pub(super) until: Until,
}

/// Draws what `member` shall have.
pub(super) fn draw(observed: &Observed<'_>, member: &Seen<'_>) -> Drawn {
    let Some(effective) = member.effective else {
        return undrawn(member);
    };
    let Ok(backend) = Backend::of(member.model) else { return undrawn(member) };
    let elsewhere = !backend.starts_engine();
    let pressure = pressed(observed, member, backend);
    let model = as_reconfigured(member.model, &pressure);
    let (endpoint, memory) = (endpoint(member, backend), as_before(member));
    let drawn = Drawn { elsewhere, endpoint, memory, pressure, ..Drawn::default() };
    if let Some(obstacle) = complained(member.complaints) {
        return Drawn { obstacle: Some(obstacle), ..drawn };
    }
    let images = &observed.settings.images;
    let placed = place(member.model, backend, observed.cluster, settled(member), images);
    let Placed { placement, doubts } = match placed {
        Ok(placed) => placed,
        Err(refusal) => return Drawn { obstacle: Some(refused(refusal)), ..drawn },
    };
    let drawn = Drawn { doubts, ..drawn };
    let gpu = gpu(&placement);
    let blueprint = Blueprint::of(&model, effective, &placement, observed.settings);
    let objects = blueprint.and_then(|blueprint| {
        let claim = claim_of(observed, &blueprint);
        let blueprint = blueprint.with_adapters(member.adapters).on_claim(claim);
        let (weights, obstacle) = weights(observed, member, &blueprint)?;
        let memory = copies(observed, member, &blueprint)?;
        let deployment = blueprint.deployment()?;
        Ok(Drawn {
            elsewhere,
            benchmarking: measured(observed, member, &blueprint, deployment.as_ref()),
            deployment,
            files: blueprint.files()?,
            weights,
            endpoint: drawn.endpoint.clone(),
            gpu: gpu.clone(),
            obstacle: obstacle.or_else(|| memory.in_the_way(member, observed.now)),
            unfilled: None,
            doubts: drawn.doubts.iter().cloned().chain(blueprint.doubt()).collect(),
            memory,
            pressure: drawn.pressure.clone(),
            until: blueprint.until(claim),
        })
    });
    objects.unwrap_or_else(|refusal| Drawn { obstacle: Some(refused(refusal)), gpu, ..drawn })
}

/// Nothing but what was there before.
fn undrawn(member: &Seen<'_>) -> Drawn {
    let (obstacle, memory) = (complained(member.complaints), as_before(member));
    Drawn { obstacle, memory, ..Drawn::default() }
}

fn measured(
    observed: &Observed<'_>,
    member: &Seen<'_>,
    blueprint: &Blueprint<'_>,
    wanted: Option<&Deployment>,
) -> Benchmarking {
    let nodes = serving_nodes(member.pods.iter().copied());
    let mut classes: Vec<DeviceClass> = Vec::new();
    for class in nodes.iter().filter_map(|node| observed.cluster.class_of(node)) {
        if !classes.contains(&class) {
            classes.push(class);
        }
    }
    let there = member.deployment.zip(wanted);
    benchmarking(
        blueprint,
        &benchmarking::Seen {
            classes,
            results: observed.results,
            jobs: &member.jobs,
            settled: there.is_none_or(|(there, wanted)| is_settled(there, wanted)),
            status: member.model.status.as_ref(),
            now: observed.now,
        },
    )
}

/// Whether every pod of a Deployment is as `wanted`.
fn is_settled(there: &Deployment, wanted: &Deployment) -> bool {
    let status = there.status.clone().unwrap_or_default();
    spec_hash(there) == spec_hash(wanted)
        && status.observed_generation == there.metadata.generation
        && status.updated_replicas == status.replicas
}

/// The Service of `member`; whether it serves its labels follows from its place in its group.
pub(super) fn service_of(
    observed: &Observed<'_>,
    member: &Seen<'_>,
    verdict: &Verdict,
) -> Option<Service> {
    let backend = Backend::of(member.model).ok().filter(|backend| backend.starts_engine())?;
    let serving = match (observed.group, &verdict.standing) {
        (GroupId::Alone(_), _) => Serving::Alone,
        (_, Standing::Holding | Standing::Yielding | Standing::Draining) => Serving::Active,
        _ => Serving::Inactive,
    };
    Some(service(member.model, member.effective?, backend, serving))
}

/// `deployment` with so many replicas, as far as they are this controller's to say.
pub(super) fn wanted(
    member: &Seen<'_>,
    mut deployment: Deployment,
    engine: &Engine,
    replicas: u32,
) -> WantedEngine {
    // One that was never made would begin with Kubernetes' default of one.
    if scaled_elsewhere(member) && member.deployment.is_some() {
        let step = ((engine.asked == 0) != (replicas == 0)).then_some(replicas);
        return WantedEngine::ScaledElsewhere { deployment: Box::new(deployment), step };
    }
    deployment.spec.replicas = i32::try_from(replicas).ok();
    WantedEngine::Deployment(Box::new(deployment))
}

/// What runs goes on as it is, with so many replicas as far as they are this controller's to say.
pub(super) fn kept(member: &Seen<'_>, replicas: u32) -> WantedEngine {
    let theirs = scaled_elsewhere(member) && replicas > 0;
    if theirs { WantedEngine::AsItIs } else { WantedEngine::Scaled(replicas) }
}

/// Whether another autoscaler says how many replicas there are.
pub(super) fn scaled_elsewhere(member: &Seen<'_>) -> bool {
    crate::effective::scaled_elsewhere(member.model)
}

fn complained(complaints: &[Complaint]) -> Option<Obstacle> {
    let first = complaints.first()?;
    let unknown = first.field == "spec.backend";
    let reason =
        if unknown { ConditionReason::BackendUnsupported } else { ConditionReason::ConfigInvalid };
    let all: Vec<String> = complaints.iter().map(ToString::to_string).collect();
    Some(Obstacle {
        condition: ConditionType::ConfigValid,
        reason: reason.into(),
        message: all.join("; "),
        lasting: true,
    })
}

fn refused(refusal: Refusal) -> Obstacle {
    Obstacle {
        condition: refusal.condition(),
        reason: refusal.reason.into(),
        message: refusal.message,
        lasting: true,
    }
}

/// Where the engine answers inside the cluster.
fn endpoint(member: &Seen<'_>, backend: Backend) -> Option<String> {
    if !backend.starts_engine() {
        return Config::of(Some(&member.model.spec.config)).text("url").ok()?.map(Into::into);
    }
    let (name, namespace) = (names::object(&member.id.name), &member.id.namespace);
    Some(format!("http://{name}.{namespace}.svc:{}", backend.port()))
}

/// The GPU as far as the placement tells; the node comes from the pod.
fn gpu(placement: &Placement) -> Option<GpuStatus> {
    let vendor = match placement.vendor {
        Vendor::Nvidia => Named::Nvidia,
        Vendor::Amd => Named::Amd,
        Vendor::Cpu => Named::Cpu,
        Vendor::Intel => return None,
    };
    Some(GpuStatus {
        vendor: Some(vendor),
        architecture: placement.architecture.clone(),
        memory_mb: placement.memory_mib.and_then(|memory| i64::try_from(memory).ok()),
        ..GpuStatus::default()
    })
}

/// The same with what the GPUs of the engine's node are.
pub(super) fn on_device(gpu: GpuStatus, observed: &Observed<'_>, engine: &Engine) -> GpuStatus {
    let runs_on_one = gpu.vendor.is_some_and(|vendor| vendor != Named::Cpu);
    let node = engine.node.as_deref().filter(|_| runs_on_one);
    GpuStatus { device: node.and_then(|node| observed.cluster.product_of(node)), ..gpu }
}

/// What an engine that runs was placed by; it stays there while that lasts.
fn settled<'a>(member: &Seen<'a>) -> Settled<'a> {
    let status = member.model.status.as_ref();
    let gpu = status.and_then(|status| status.gpu.as_ref());
    let vendor = gpu.and_then(|gpu| gpu.vendor).and_then(|vendor| match vendor {
        Named::Nvidia => Some(Vendor::Nvidia),
        Named::Amd => Some(Vendor::Amd),
        Named::Auto | Named::Cpu => None,
    });
    Settled { vendor, architecture: gpu.and_then(|gpu| gpu.architecture.as_deref()) }
}
