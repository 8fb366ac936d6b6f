//! Whole plans as tables: what is observed, and everything that is written for it.

use std::collections::BTreeSet;

use flexinfer_crds::keys;
use flexinfer_crds::model::{Gpu, Phase};
use flexinfer_crds::{Model, ModelSpec};
use serde_json::json;

use super::*;
use crate::effective::Defaults;
use crate::planning::objects::{Benchmarks, Images};
use crate::planning::placing::Offer;
use crate::planning::time::time;

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
    adapters: Adapters,
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
        adapters: Adapters::default(),
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
            job_pods: Vec::new(),
            adapters: member.adapters,
            demand: &member.demand,
            name_conflict: None,
            record: Record::default(),
        }],
        lease: None,
        claims: &member.claims,
        results: &member.results,
        cluster: Cluster { nodes: &member.nodes, runtime_classes: &BTreeSet::new() },
        kv_cache_usage: &member.kv_cache_usage,
        settings: &settings(),
        now: at(now),
    };
    plan(&observed).wanted.remove(0)
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

#[test]
fn a_new_model_gets_everything_but_replicas() {
    let mut new = simulated("m");
    new.model.metadata.finalizers = None;
    let wanted = planned(&new);
    assert_eq!(wanted.finalizer, Finalizer::Add);
    assert_eq!(deployment(&wanted).spec.replicas, Some(0));
    assert_eq!(wanted.service.unwrap().metadata.name.as_deref(), Some("m"));
    assert_eq!(wanted.status.phase, Some(Phase::Idle));
    assert_eq!(wanted.status.endpoint.as_deref(), Some("http://m.default.svc:8000"));
}

#[test]
fn a_pinned_model_gets_its_replicas() {
    let mut pinned = simulated("m");
    pinned.effective.as_mut().unwrap().min_replicas = 2;
    pinned.effective.as_mut().unwrap().max_replicas = 2;
    assert_eq!(deployment(&planned(&pinned)).spec.replicas, Some(2));
}

#[test]
fn k8s_22_the_same_sight_gives_the_same_plan_and_then_nothing_new() {
    let mut model = simulated("m");
    let first = planned(&model);
    assert_eq!(first, planned(&model));
    model.model.status = Some(first.status.clone());
    model.deployment = Some(deployment(&first).clone());
    let again = planned_at(&model, 600);
    assert_eq!(again.status, first.status);
    assert_eq!(again.engine, first.engine);
    assert_eq!(again.announcements, []);
}

#[test]
fn a_spec_that_means_nothing_makes_nothing_and_says_why() {
    let typo = member("m", ModelSpec { backend: "vlm".into(), ..ModelSpec::default() });
    let wanted = planned(&typo);
    assert_eq!((wanted.engine, wanted.service), (WantedEngine::Nothing, None));
    assert_eq!(wanted.status.phase, Some(Phase::Failed));
    assert_eq!(wanted.announcements[0].reason, "BackendUnsupported");
}

#[test]
fn an_edit_that_means_nothing_leaves_what_runs() {
    let mut edited = simulated("m");
    let running = planned(&edited);
    edited.deployment = Some(deployment(&running).clone());
    edited.complaints = vec![Complaint::error("spec.config.maxConcurrency", "0 is none")];
    let wanted = planned(&edited);
    assert_eq!(wanted.engine, WantedEngine::Scaled(0));
    assert!(wanted.status.message.unwrap().contains("maxConcurrency"));
}

#[test]
fn an_engine_that_somebody_else_runs_is_only_told_of() {
    let spec = json!({ "backend": "external", "config": { "url": "http://gpu-box:8000" } });
    let wanted = planned(&member("m", serde_json::from_value(spec).unwrap()));
    assert_eq!((wanted.engine, wanted.service), (WantedEngine::Nothing, None));
    assert_eq!(wanted.status.phase, Some(Phase::Ready));
    assert_eq!(wanted.status.endpoint.as_deref(), Some("http://gpu-box:8000"));
}

#[test]
fn k8s_14_a_model_that_could_never_run_is_let_go() {
    for spec in [
        ModelSpec { backend: "vlm".into(), ..ModelSpec::default() },
        ModelSpec {
            backend: "comfyui".into(),
            source: Some("HF://a/b".into()),
            gpu: Some(Gpu::default()),
            ..ModelSpec::default()
        },
    ] {
        let mut doomed = member("m", spec);
        doomed.model.metadata.deletion_timestamp = Some(time(at(0)));
        assert_eq!(planned(&doomed).finalizer, Finalizer::Remove);
    }
}

#[test]
fn k8s_14_a_deleted_model_waits_for_its_pods_but_not_for_ever() {
    let mut leaving = simulated("m");
    let pod = json!({ "metadata": { "name": "m-1" }, "spec": { "containers": [] } });
    leaving.pods.push(serde_json::from_value(pod).unwrap());
    leaving.model.metadata.deletion_timestamp = Some(time(at(0)));
    assert_eq!(planned_at(&leaving, 10).finalizer, Finalizer::Keep);
    let wanted = planned_at(&leaving, 50);
    assert_eq!(wanted.finalizer, Finalizer::Remove, "its node may be lost");
    leaving.pods.clear();
    assert_eq!(planned_at(&leaving, 10).finalizer, Finalizer::Remove);
}

#[test]
fn a_deleted_model_gets_nothing_new() {
    let mut leaving = simulated("m");
    leaving.model.metadata.deletion_timestamp = Some(time(at(0)));
    let wanted = planned(&leaving);
    assert_eq!((wanted.engine, wanted.service), (WantedEngine::Nothing, None));
}

#[test]
fn k8s_01_replicas_that_another_autoscaler_sets_are_its_own() {
    let mut scaled = simulated("m");
    scaled.model.metadata.annotations =
        Some([(keys::AUTOSCALER.to_owned(), "external".to_owned())].into());
    assert_eq!(deployment(&planned(&scaled)).spec.replicas, Some(0), "until it is made");
    let mut there = deployment(&planned(&scaled)).clone();
    let step = |member: &Member| match planned(member).engine {
        WantedEngine::ScaledElsewhere { deployment, step } => {
            assert_eq!(deployment.spec.replicas, None);
            step
        }
        other => panic!("{other:?}"),
    };
    scaled.effective.as_mut().unwrap().min_replicas = 1;
    scaled.deployment = Some(there.clone());
    assert_eq!(step(&scaled), Some(1), "a sleeping model is woken");
    there.spec.replicas = Some(4);
    scaled.deployment = Some(there);
    assert_eq!(step(&scaled), None, "one that is up is left alone");
    scaled.model.metadata.annotations = None;
    assert_eq!(deployment(&planned(&scaled)).spec.replicas, Some(1), "its own again");
}

#[test]
fn queue_14_one_that_another_autoscaler_has_up_is_never_set_to_fewer_by_demand() {
    let mut scaled = simulated("m");
    scaled.model.metadata.annotations =
        Some([(keys::AUTOSCALER.to_owned(), "external".to_owned())].into());
    let mut there = deployment(&planned(&scaled)).clone();
    let status = |waiting: i32| {
        let gateways = ["a", "b", "c", "d", "e"];
        let entry = |gateway| {
            json!({
                "gateway": gateway, "inFlight": 0, "waiting": waiting, "peak": waiting,
                "renewTime": "2026-01-01T00:00:00.000000Z",
            })
        };
        let traffic: Vec<_> = gateways.into_iter().map(entry).collect();
        serde_json::from_value(json!({ "traffic": traffic })).unwrap()
    };
    let mut step = |replicas: i32, waiting: i32| {
        there.spec.replicas = Some(replicas);
        scaled.deployment = Some(there.clone());
        scaled.demand.look(Some(&status(waiting)), at(0));
        match planned(&scaled).engine {
            WantedEngine::ScaledElsewhere { step, .. } => step,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(step(0, 1), Some(1), "five gateways wake one model once");
    assert_eq!(step(3, 1), None);
    assert_eq!(step(1, 1), None);
}

#[test]
fn weights_are_on_their_claim_before_an_engine_starts() {
    let spec = json!({
        "backend": "llamacpp",
        "source": "HF://org/model",
        "config": { "ggufFile": "m.gguf" },
        "serverless": { "minReplicas": 1 },
    });
    let mut model = member("m", serde_json::from_value(spec).unwrap());
    let wanted = planned(&model);
    let Some(CacheStep::Claim(claim)) = wanted.caching else { panic!("{:?}", wanted.caching) };
    assert_eq!(wanted.status.phase, Some(Phase::Pending));
    assert_eq!(deployment(&planned(&model)).spec.replicas, Some(0));

    let name = claim.metadata.name.clone().unwrap();
    model.claims.insert(name, Arc::new(*claim));
    let wanted = planned(&model);
    let Some(CacheStep::Make(mut job)) = wanted.caching else { panic!("{:?}", wanted.caching) };
    let cached = |wanted: &Wanted| {
        let found = wanted.status.conditions.iter().find(|found| found.type_ == "Cached").unwrap();
        (found.status.clone(), found.reason.clone())
    };
    let pending = ("False".to_owned(), "PrefetchPending".to_owned());
    assert_eq!(cached(&planned(&model)), pending);

    let done = json!({ "conditions": [{ "type": "Complete", "status": "True" }], "succeeded": 1 });
    job.status = Some(serde_json::from_value(done).unwrap());
    model.jobs.push(*job);
    let wanted = planned(&model);
    assert_eq!(cached(&wanted), ("True".to_owned(), "PrefetchSucceeded".to_owned()));
    assert_eq!(deployment(&wanted).spec.replicas, Some(1));
    assert_eq!(wanted.status.cache.unwrap().ready, Some(true));
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

/// A Job's status that ends it.
fn ended_as(kind: &str) -> k8s_openapi::api::batch::v1::JobStatus {
    let status = json!({ "conditions": [{ "type": kind, "status": "True" }] });
    serde_json::from_value(status).unwrap()
}

#[test]
fn a_model_that_asks_to_be_measured_gets_a_job_once_one_kind_of_node_serves_it() {
    let mut model = simulated("m");
    model.model.metadata.annotations = Some([(keys::BENCHMARK.into(), "auto".into())].into());
    model.nodes = vec![gpu_node("a", "sm_89"), gpu_node("b", "sm_90")];
    let complete = |wanted: &Wanted| {
        let all = &wanted.status.conditions;
        let found = all.iter().find(|found| found.type_ == "BenchmarkComplete").unwrap();
        (found.reason.clone(), found.message.clone())
    };
    let asleep = planned(&model);
    assert_eq!((asleep.jobs.len(), &*complete(&asleep).0), (0, "BenchmarkPending"));
    model.pods = vec![serving_on("a"), serving_on("b")];
    let mixed = planned(&model);
    assert_eq!(mixed.jobs, []);
    assert!(complete(&mixed).1.contains("several kinds of nodes"), "{:?}", complete(&mixed));

    model.pods.pop();
    let job = planned(&model).jobs.remove(0);
    model.jobs = vec![job];
    let running = planned(&model);
    assert_eq!((running.jobs.len(), &*complete(&running).0), (0, "BenchmarkRunning"));
    assert_eq!(running.status.cache, None, "it is no Job of the weights");

    model.model.metadata.deletion_timestamp = Some(time(at(0)));
    model.jobs.clear();
    assert_eq!(planned(&model).jobs, [], "nobody measures what is going");
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

#[test]
fn copies_in_memory_are_known_while_the_model_sleeps_and_until_their_node_is_gone() {
    let mut model = kept_in_memory();
    let nodes = |wanted: &Wanted| wanted.status.cache.clone().map(|cache| cache.nodes);
    assert_eq!(nodes(&planned(&model)), None);
    model.pods = vec![serving_on("b")];
    let first = planned(&model);
    assert_eq!(nodes(&first), Some(vec!["b".to_owned()]));
    model.model.status = Some(first.status);
    model.pods = vec![serving_on("a")];
    let second = planned(&model);
    assert_eq!(nodes(&second), Some(vec!["a".to_owned(), "b".to_owned()]));
    model.model.status = Some(second.status);
    model.pods.clear();
    model.nodes.remove(0);
    assert_eq!(nodes(&planned(&model)), Some(vec!["b".to_owned()]));
    model.complaints = vec![Complaint::error("spec.config", "a typo")];
    assert!(nodes(&planned(&model)).is_some_and(|nodes| nodes.contains(&"b".to_owned())));
}

#[test]
fn a_deleted_model_waits_until_its_copies_are_gone_but_not_for_ever() {
    let mut model = kept_in_memory();
    model.pods = vec![serving_on("a")];
    model.model.status = Some(planned(&model).status);
    model.model.metadata.deletion_timestamp = Some(time(at(0)));
    let leaving = planned_at(&model, 1);
    assert_eq!((leaving.jobs, leaving.finalizer), (Vec::new(), Finalizer::Keep), "it serves yet");

    model.pods.clear();
    let wanted = planned_at(&model, 2);
    assert_eq!((wanted.jobs.len(), wanted.finalizer), (1, Finalizer::Keep));
    model.jobs = wanted.jobs;
    let wanted = planned_at(&model, 3);
    assert_eq!((wanted.jobs.len(), wanted.finalizer), (0, Finalizer::Keep));
    assert_eq!(planned_at(&model, 50).finalizer, Finalizer::Remove, "its node may be lost");
    for end in ["Complete", "Failed"] {
        model.jobs[0].status = Some(ended_as(end));
        assert_eq!(planned_at(&model, 4).finalizer, Finalizer::Remove, "{end}");
    }
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

fn arguments(wanted: &Wanted) -> String {
    let pod = deployment(wanted).spec.template.spec.clone().unwrap();
    pod.containers[0].args.clone().unwrap_or_default().join(" ")
}

#[test]
fn an_engine_under_pressure_is_started_anew_with_fewer_sequences() {
    let mut full = serving(json!({
        "backend": "vllm", "source": "file:///weights", "image": "vllm:1",
        "config": { "maxNumSeqs": 64 }, "kvCache": { "pressurePolicy": "Reconfigure" },
    }));
    full.kv_cache_usage.insert("n1".to_owned(), 0.92);
    let wanted = planned_at(&full, 60);
    assert!(arguments(&wanted).contains("--max-num-seqs 32"), "{}", arguments(&wanted));
    let told = &wanted.announcements.last().unwrap();
    assert_eq!((told.warning, told.reason.as_str()), (true, "KVCachePressure"));
    assert_eq!(
        told.note,
        "its key-value cache is 92 % full; its engine starts anew with 32 sequences instead of 64"
    );
    full.model.status = Some(wanted.status);
    let again = planned_at(&full, 90);
    assert!(again.announcements.is_empty(), "{:?}", again.announcements);
    full.kv_cache_usage.insert("n1".to_owned(), 0.2);
    let relieved = planned_at(&full, 400);
    assert!(arguments(&relieved).contains("--max-num-seqs 64"));
    assert_eq!(relieved.announcements[0].reason, "KVCacheRestored");
}

#[test]
fn an_engine_is_started_with_room_for_its_adapters() {
    let mut model = serving(json!({
        "backend": "vllm", "source": "file:///weights", "image": "vllm:1", "gpu": { "vendor": "nvidia" },
    }));
    assert!(!arguments(&planned(&model)).contains("lora"));
    model.adapters = Adapters { count: 1, rank: Some(64) };
    let told = arguments(&planned(&model));
    assert!(told.contains("--enable-lora --max-loras 4 --max-lora-rank 64"), "{told}");
}

#[test]
fn a_model_that_is_evicted_sleeps_and_is_told_of() {
    let mut full =
        serving(json!({ "backend": "simulator", "kvCache": { "pressurePolicy": "Evict" } }));
    full.kv_cache_usage.insert("n1".to_owned(), 0.92);
    let wanted = planned_at(&full, 60);
    let kv_cache = wanted.status.kv_cache.clone().unwrap();
    assert_eq!(kv_cache.evicted, Some(false));
    // Nothing is in flight.
    assert_eq!(wanted.verdict.as_ref().unwrap().standing, Standing::Leaving);
    assert_eq!(deployment(&wanted).spec.replicas, Some(0));
    full.model.status = Some(wanted.status);
    let asleep = &mut full;
    asleep.deployment.as_mut().unwrap().spec.replicas = Some(0);
    asleep.pods.clear();
    let wanted = planned_at(asleep, 70);
    assert_eq!(wanted.status.kv_cache.as_ref().unwrap().evicted, Some(true));
    assert!(wanted.announcements.iter().any(|told| told.reason == "KVCacheEvicted"));
}

#[test]
fn an_engine_serves_on_until_its_new_weights_are_there() {
    let spec = json!({
        "backend": "simulator", "source": "HF://org/model", "serverless": { "minReplicas": 1 },
    });
    let mut model = serving(spec);
    let claim = planned(&model).caching;
    let Some(CacheStep::Claim(claim)) = claim else { panic!("{claim:?}") };
    model.claims.insert(claim.metadata.name.clone().unwrap(), Arc::new(*claim));
    model.model.spec.source = Some("HF://org/other".to_owned());
    let wanted = planned(&model);
    assert!(matches!(wanted.caching, Some(CacheStep::Make(_))));
    assert_eq!(wanted.engine, WantedEngine::Scaled(1), "the pod is not changed");
    assert_eq!(wanted.status.phase, Some(Phase::Ready));
    assert!(wanted.status.message.unwrap().ends_with("what ran before serves on"));
}

#[test]
fn a_pod_that_failed_is_removed_after_a_while() {
    let mut model = serving(json!({ "backend": "simulator" }));
    model.pods[0].status.as_mut().unwrap().phase = Some("Failed".to_owned());
    assert_eq!(planned_at(&model, 299).leftovers, []);
    let gone = Leftover { name: "m-1".to_owned(), uid: "p1".to_owned() };
    assert_eq!(planned_at(&model, 300).leftovers, [gone]);
}
