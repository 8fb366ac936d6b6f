//! Whole plans as tables: what is observed, and everything that is written for it.

mod autoscalers;
mod ending;
mod measuring;
mod memory;
mod moving;
mod pressure;
mod progress;
mod refused;
mod specs;
mod swaps;
mod weights;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use flexinfer_crds::keys;
use flexinfer_crds::model::{Gpu, Phase};
use flexinfer_crds::{Model, ModelSpec};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use serde_json::json;

use super::*;
use crate::backends::Complaint;
use crate::effective::{Defaults, Effective};
use crate::ids::{GroupId, ModelId};
use crate::planning::caching::CacheStep;
use crate::planning::group::Record;
use crate::planning::model::Demand;
use crate::planning::objects::{Adapters, Benchmarks, Images, Settings};
use crate::planning::placing::{Cluster, Offer};
use crate::planning::pod::PodId;
use crate::planning::progress::Progress;
use crate::planning::time::time;
use crate::planning::writing::{Going, Part, Writing};

fn at(seconds: u64) -> Moment {
    Moment::after_origin(Duration::from_secs(1_000_000 + seconds))
}

/// A member with everything that [`Seen`] borrows.
struct Member {
    id: ModelId,
    model: Model,
    effective: Option<Effective>,
    complaints: Vec<Complaint>,
    deployment: Option<Deployment>,
    pods: Vec<Pod>,
    jobs: Vec<Job>,
    claims: BTreeMap<String, Arc<PersistentVolumeClaim>>,
    kv_cache_usage: BTreeMap<String, f64>,
    demand: Demand,
    results: BTreeMap<String, String>,
    nodes: Vec<Offer>,
    storage_classes: Option<BTreeMap<String, bool>>,
    job_pods: Vec<Pod>,
    adapters: Adapters,
    writing: Writing,
    dispute: Option<Dispute>,
    going: Vec<Going>,
    progress: Option<Progress>,
    record: Record,
}

fn member(name: &str, spec: ModelSpec) -> Member {
    let mut model = Model::new(name, spec);
    model.metadata.namespace = Some("default".into());
    model.metadata.uid = Some("7".into());
    model.metadata.generation = Some(1);
    model.metadata.finalizers = Some(vec![keys::MODEL_FINALIZER.to_owned()]);
    let (effective, complaints) = match Effective::of(&model, 1, &Defaults::default()) {
        Ok(effective) => (Some(effective), Vec::new()),
        Err(complaints) => (None, complaints),
    };
    Member {
        id: ModelId::new("default", name),
        model,
        effective,
        complaints,
        deployment: None,
        pods: Vec::new(),
        jobs: Vec::new(),
        claims: BTreeMap::new(),
        kv_cache_usage: BTreeMap::new(),
        demand: Demand::default(),
        results: BTreeMap::new(),
        nodes: Vec::new(),
        storage_classes: None,
        job_pods: Vec::new(),
        adapters: Adapters::default(),
        writing: Writing::default(),
        dispute: None,
        going: Vec::new(),
        progress: None,
        record: Record::default(),
    }
}

fn simulated(name: &str) -> Member {
    member(name, ModelSpec { backend: "simulator".into(), ..ModelSpec::default() })
}

fn settings() -> Settings {
    let image = |name: &str| (format!("FLEXINFER_{name}_IMAGE"), format!("{name}:1"));
    let benchmarks = Benchmarks {
        service_account: Some("benchmarker".into()),
        gateway: Some("http://gateway".into()),
        ..Benchmarks::default()
    };
    let images = Images::of(["SIMULATOR", "NODE"].map(image));
    Settings { images, benchmarks, ..Settings::default() }
}

fn planned_at(member: &Member, now: u64) -> Wanted {
    whole_plan(member, now).wanted.remove(0)
}

/// When to look again although nothing changed.
fn revisit(member: &Member, now: u64) -> Option<Moment> {
    whole_plan(member, now).revisit
}

fn whole_plan(member: &Member, now: u64) -> Plan {
    let group = member
        .effective
        .as_ref()
        .map_or_else(|| GroupId::Alone(member.id.clone()), |model| model.group.clone());
    let observed = Observed {
        group: &group,
        members: vec![Seen {
            id: &member.id,
            model: &member.model,
            effective: member.effective.as_ref(),
            complaints: &member.complaints,
            deployment: member.deployment.as_ref(),
            pods: member.pods.iter().collect(),
            jobs: member.jobs.iter().collect(),
            job_pods: member.job_pods.iter().collect(),
            adapters: member.adapters,
            demand: &member.demand,
            name_conflict: None,
            writing: &member.writing,
            dispute: member.dispute.as_ref(),
            going: member.going.clone(),
            progress: member.progress.as_ref(),
            record: member.record.clone(),
        }],
        lease: None,
        claims: &member.claims,
        results: &member.results,
        cluster: Cluster {
            nodes: &member.nodes,
            runtime_classes: &BTreeSet::new(),
            storage_classes: member.storage_classes.as_ref(),
        },
        kv_cache_usage: &member.kv_cache_usage,
        settings: &settings(),
        now: at(now),
    };
    plan(&observed)
}

fn planned(member: &Member) -> Wanted {
    planned_at(member, 0)
}

/// The Deployment that a plan wants.
fn deployment(wanted: &Wanted) -> &Deployment {
    match &wanted.engine {
        WantedEngine::Deployment(deployment) => deployment,
        other => panic!("no Deployment: {other:?}"),
    }
}

/// A node with one GPU of this architecture.
fn gpu_node(name: &str, architecture: &str) -> Offer {
    let labels =
        json!({ "flexinfer.ai/gpu.vendor": "NVIDIA", "flexinfer.ai/gpu.arch": architecture });
    let node = json!({
        "metadata": { "name": name, "labels": labels },
        "status": { "allocatable": { "nvidia.com/gpu": "1" } },
    });
    Offer::of(&serde_json::from_value(node).unwrap())
}

/// A pod on this node that takes requests.
fn serving_on(node: &str) -> Pod {
    let pod = json!({
        "metadata": { "name": format!("m-{node}") },
        "spec": { "nodeName": node, "containers": [] },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    serde_json::from_value(pod).unwrap()
}

/// The same, with its weights in the memory of the node, where they are kept.
fn keeping_on(node: &str) -> Pod {
    let mut pod = serving_on(node);
    let kept = json!([{ "name": "m", "hostPath": { "path": "/dev/shm/flexinfer/default/m" } }]);
    pod.spec.as_mut().unwrap().volumes = Some(serde_json::from_value(kept).unwrap());
    pod
}

/// A Job's status that ends it.
fn ended_as(kind: &str) -> k8s_openapi::api::batch::v1::JobStatus {
    let status = json!({ "conditions": [{ "type": kind, "status": "True" }] });
    serde_json::from_value(status).unwrap()
}

/// A model whose engine has been serving on `n1` since second 0.
fn serving(spec: serde_json::Value) -> Member {
    let mut model = member("m", serde_json::from_value(spec).unwrap());
    model.effective.as_mut().unwrap().min_replicas = 1;
    let mut there = deployment(&planned(&model)).clone();
    there.spec.replicas = Some(1);
    model.deployment = Some(there);
    let since = serde_json::to_value(time(at(0))).unwrap();
    let pod = json!({
        "metadata": { "name": "m-1", "uid": "p1", "creationTimestamp": since },
        "spec": { "nodeName": "n1", "containers": [{ "name": "model" }] },
        "status": { "phase": "Running", "conditions": [
            { "type": "Ready", "status": "True", "lastTransitionTime": since },
        ] },
    });
    model.pods.push(serde_json::from_value(pod).unwrap());
    model
}

/// A model that serves, with its claim there, of which the Model now asks for other weights.
fn serving_with_another_source() -> Member {
    let spec = json!({
        "backend": "simulator", "source": "HF://org/model", "serverless": { "minReplicas": 1 },
    });
    let mut model = serving(spec);
    let claim = planned(&model).caching;
    let Some(CacheStep::Claim(claim)) = claim else { panic!("{claim:?}") };
    model.claims.insert(claim.metadata.name.clone().unwrap(), Arc::new(*claim));
    model.model.spec.source = Some("HF://org/other".to_owned());
    model
}

fn arguments(wanted: &Wanted) -> String {
    let pod = deployment(wanted).spec.template.spec.clone().unwrap();
    pod.containers[0].args.clone().unwrap_or_default().join(" ")
}

/// A member of a group whose weights are copied to the memory of its node.
fn kept_in_memory() -> Member {
    let spec = json!({
        "backend": "vllm",
        "source": "pvc://weights/llama",
        "gpu": { "count": 1, "shared": "desk" },
        "cache": { "flashLoader": { "enabled": true } },
    });
    let mut model = member("m", serde_json::from_value(spec).unwrap());
    model.nodes = vec![gpu_node("a", "sm_89"), gpu_node("b", "sm_89")];
    model
}
