//! When a model is measured, and what is said of it.

use flexinfer_crds::Model;
use flexinfer_crds::model::Phase;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::json;

use super::*;
use crate::backends::Backend;
use crate::effective::{Defaults, Effective};
use crate::planning::objects::{Benchmarks, Images, SecretKey, Settings};
use crate::planning::placing::Placement;
use crate::planning::time::time;

/// A Model, and what it is looked at with.
struct Case {
    model: Model,
    settings: Settings,
    classes: Vec<DeviceClass>,
    results: BTreeMap<String, String>,
    jobs: Vec<Job>,
    settled: bool,
    status: Option<ModelStatus>,
}

fn class(architecture: &str) -> DeviceClass {
    DeviceClass::of_node(&[(keys::GPU_ARCHITECTURE.to_owned(), architecture.to_owned())].into())
}

fn at(seconds: u64) -> Moment {
    Moment::after_origin(Duration::from_secs(1_000_000 + seconds))
}

impl Case {
    /// `llama` on vLLM, which asks to be measured and is served by one kind of node.
    fn new() -> Self {
        Self::of("llama", "vllm")
    }

    fn of(name: &str, backend: &str) -> Self {
        let model = serde_json::from_value(json!({
            "apiVersion": "inference.flexinfer.ai/v1alpha2",
            "kind": "Model",
            "metadata": {
                "name": name, "namespace": "models", "uid": "u-1",
                "annotations": { keys::BENCHMARK: "auto" },
            },
            "spec": { "backend": backend, "source": "HF://org/name", "image": "engine:1" },
        }));
        let benchmarks = Benchmarks {
            service_account: Some("benchmarker".into()),
            gateway: Some("http://gateway".into()),
            results_namespace: "flexinfer".into(),
            ..Benchmarks::default()
        };
        let images = Images::of([("FLEXINFER_NODE_IMAGE".into(), "node:1".into())]);
        Self {
            model: model.unwrap(),
            settings: Settings { images, benchmarks, ..Settings::default() },
            classes: vec![class("sm_89")],
            results: BTreeMap::new(),
            jobs: Vec::new(),
            settled: true,
            status: None,
        }
    }

    fn at(&self, seconds: u64) -> Benchmarking {
        self.with(|blueprint| {
            let jobs: Vec<&Job> = self.jobs.iter().collect();
            let seen = Seen {
                classes: self.classes.clone(),
                results: &self.results,
                jobs: &jobs,
                settled: self.settled,
                status: self.status.as_ref(),
                now: at(seconds),
            };
            benchmarking(blueprint, &seen)
        })
    }

    fn with<T>(&self, look: impl FnOnce(&Blueprint<'_>) -> T) -> T {
        let effective = Effective::of(&self.model, 1, &Defaults::default()).unwrap();
        let placement = Placement::processor();
        look(&Blueprint::of(&self.model, &effective, &placement, &self.settings).unwrap())
    }

    fn configuration(&self) -> String {
        self.with(|blueprint| blueprint.configuration().unwrap())
    }

    fn now(&self) -> Benchmarking {
        self.at(0)
    }

    fn started(&self) -> Job {
        *self.now().job.expect("a Job is made")
    }

    /// Somebody has measured it on nodes of this kind.
    fn measured(&mut self, class: &DeviceClass, rate: &str) {
        let key = self.with(|blueprint| blueprint.subject(class).key());
        self.results.insert(key, rate.to_owned());
    }

    /// Its Job was made, and ended like this.
    fn ended(&mut self, kind: &str) {
        let mut job = self.started();
        let end = json!({ "type": kind, "status": "True", "message": "it gave up",
            "lastTransitionTime": time(at(0)) });
        job.status = Some(serde_json::from_value(json!({ "conditions": [end] })).unwrap());
        self.jobs = vec![job];
    }
}

fn reason(next: &Benchmarking) -> ConditionReason {
    next.standing.as_ref().expect("it is said").0
}

fn message(next: &Benchmarking) -> &str {
    &next.standing.as_ref().expect("it is said").1
}

#[test]
fn a_model_that_asks_for_it_is_measured_once_for_each_kind_of_node() {
    let mut case = Case::new();
    let job = case.started();
    let name = job.metadata.name.clone().unwrap();
    assert!(name.starts_with("llama-benchmark-"), "{name}");
    assert_eq!(job.metadata.owner_references.as_ref().unwrap()[0].name, "llama");
    let pod = job.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    assert_eq!(pod.service_account_name.as_deref(), Some("benchmarker"));
    assert_eq!(
        pod.containers[0].args.as_ref().unwrap().join(" "),
        "bench --model=llama --model-name=models/llama --backend=vllm \
         --configmap=flexinfer-benchmark-results --results-namespace=flexinfer \
         --configuration="
            .to_owned()
            + &case.configuration()
    );
    case.jobs = vec![job];
    assert_eq!((reason(&case.now()), case.now().job), (ConditionReason::BenchmarkRunning, None));
    case.classes = vec![class("sm_90")];
    assert_ne!(case.started().metadata.name, Some(name), "another kind of node is another Job");
}

#[test]
fn what_is_measured_is_not_measured_again_whoever_did_it() {
    let mut case = Case::new();
    case.measured(&class("sm_89"), "42.00");
    let next = case.now();
    assert_eq!((reason(&next), &next.job), (ConditionReason::BenchmarkSucceeded, &None));
    assert_eq!(next.measured.clone().map(|found| found.tokens_per_second), Some(42.0));
    let told = message(&next);
    assert!(told.starts_with("42.0 tokens per second on vendor="), "{told}");
    assert!(told.contains("notes no namespace") && told.contains("delete bench_"), "{told}");
    case.model.metadata.annotations = None;
    let unasked = case.now();
    assert_eq!((unasked.standing, unasked.measured), (None, next.measured));
}

#[test]
fn a_job_that_failed_stays_and_is_never_repeated_by_itself() {
    let mut case = Case::new();
    case.ended("Failed");
    for seconds in [0, 100, 100_000] {
        let next = case.at(seconds);
        assert_eq!((reason(&next), &next.job), (ConditionReason::BenchmarkFailed, &None));
        assert_eq!(next.look_again, None);
        for words in ["it gave up", "kubectl logs job/llama-benchmark-", "delete it"] {
            assert!(message(&next).contains(words), "{}", message(&next));
        }
    }
    case.jobs[0].metadata.deletion_timestamp = Some(time(at(1)));
    assert_eq!(reason(&case.now()), ConditionReason::BenchmarkPending);
    case.jobs.clear();
    assert!(case.now().job.is_some(), "whoever deletes it asks for another");
}

#[test]
fn a_result_that_never_comes_is_waited_for_a_while() {
    let mut case = Case::new();
    case.ended("Complete");
    let next = case.at(20);
    assert_eq!(reason(&next), ConditionReason::BenchmarkRunning);
    assert_eq!(next.look_again, Some(Duration::from_secs(40)));
    let next = case.at(60);
    assert_eq!((reason(&next), next.look_again), (ConditionReason::BenchmarkFailed, None));
    assert!(message(&next).contains("flexinfer/flexinfer-benchmark-results"), "{}", message(&next));
}

#[test]
fn what_was_found_stays_true_while_nobody_serves() {
    let mut case = Case::new();
    case.classes.clear();
    assert_eq!(reason(&case.now()), ConditionReason::BenchmarkPending);
    let mut status = ModelStatus { phase: Some(Phase::Idle), ..ModelStatus::default() };
    status.conditions = vec![Condition {
        type_: "BenchmarkComplete".into(),
        status: "True".into(),
        reason: "BenchmarkSucceeded".into(),
        message: "as it was".into(),
        last_transition_time: time(at(0)),
        observed_generation: None,
    }];
    case.status = Some(status);
    let next = case.now();
    assert_eq!(next.standing, Some((ConditionReason::BenchmarkSucceeded, "as it was".to_owned())));
}

#[test]
fn what_is_missing_is_said() {
    let said = |case: &Case| {
        let next = case.now();
        assert_eq!((reason(&next), &next.job), (ConditionReason::BenchmarkNotConfigured, &None));
        message(&next).to_owned()
    };
    let mut case = Case::new();
    case.settings.benchmarks.service_account = None;
    assert!(said(&case).contains("BENCHMARK_SERVICE_ACCOUNT"));
    let mut case = Case::new();
    case.settings.benchmarks.gateway = None;
    assert!(said(&case).contains("PROXY_URL"));
    let mut case = Case::new();
    case.settings.images = Images::default();
    assert!(said(&case).contains("BENCHMARK_IMAGE"));
    let mut painter = Case::of("painter", "comfyui");
    painter.model.spec.source = None;
    assert!(said(&painter).contains("no chats"));
}

#[test]
fn an_image_and_a_key_for_the_gateway_are_the_settings() {
    let mut case = Case::new();
    case.settings.images = Images::of([("BENCHMARK_IMAGE".into(), "bench:2".into())]);
    case.settings.benchmarks.key = Some(SecretKey { name: "callers".into(), key: "token".into() });
    let pod = case.started().spec.unwrap().template.spec.unwrap();
    assert_eq!(pod.containers[0].image.as_deref(), Some("bench:2"));
    let variables = pod.containers[0].env.clone().unwrap();
    let key = variables.into_iter().find(|variable| variable.name == "PROXY_API_KEY").unwrap();
    assert_eq!(key.value_from.unwrap().secret_key_ref.unwrap().name, "callers");
}

#[test]
fn an_authority_of_ones_own_is_all_that_a_job_gets_of_its_secret() {
    let mut case = Case::new();
    assert_eq!(case.started().spec.unwrap().template.spec.unwrap().volumes, None);
    let ca = SecretKey { name: "gateway-tls".into(), key: "ca.crt".into() };
    case.settings.benchmarks.ca = Some(ca);
    let pod = case.started().spec.unwrap().template.spec.unwrap();
    let secret = pod.volumes.unwrap().remove(0).secret.unwrap();
    let items: Vec<String> = secret.items.unwrap().into_iter().map(|item| item.key).collect();
    assert_eq!(
        (secret.secret_name.as_deref(), items),
        (Some("gateway-tls"), vec!["ca.crt".into()])
    );
    let variables = pod.containers[0].env.clone().unwrap();
    let file = variables.into_iter().find(|variable| variable.name == "PROXY_CA").unwrap();
    let mount = pod.containers[0].volume_mounts.as_ref().unwrap()[0].mount_path.clone();
    assert_eq!(file.value, Some(format!("{mount}/ca.crt")));
}

#[test]
fn the_name_of_a_job_fits_whatever_the_models_is() {
    for length in [1, 42, 43, 44, 63, 253] {
        let name = "a-".repeat(length).chars().take(length).collect::<String>() + "b";
        let case = Case::of(&name, "vllm");
        let job = case.started().metadata.name.unwrap();
        assert!(job.len() <= 63 && !job.contains("--"), "{job}");
    }
}

#[test]
fn a_result_of_a_model_of_that_name_in_another_namespace_is_none_of_this_ones() {
    let mut case = Case::new();
    let own = case.model.clone();
    case.model.metadata.namespace = Some("others".into());
    measured_as_it_is(&mut case, &class("sm_89"));
    let theirs = std::mem::replace(&mut case.model, own);
    let next = case.now();
    assert_eq!((reason(&next), &next.measured), (ConditionReason::BenchmarkPending, &None));
    assert!(next.job.is_some());

    measured_as_it_is(&mut case, &class("sm_89"));
    for model in [case.model.clone(), theirs] {
        case.model = model;
        assert_eq!(reason(&case.now()), ConditionReason::BenchmarkSucceeded, "both stand");
        assert!(!message(&case.now()).contains("no namespace"), "{}", message(&case.now()));
    }
}

/// What of a Model changes.
type Change = (&'static str, fn(&mut Model));

/// A measurement of the model as it is now, on this kind of node.
fn measured_as_it_is(case: &mut Case, class: &DeviceClass) {
    let measured = benchmarks::Measured {
        tokens_per_second: 42.0,
        completion_tokens: 640,
        duration_seconds: 30.0,
        samples: 5,
        latency_ms: None,
        timestamp: "2026-01-02T03:04:05Z".to_owned(),
        configuration: Some(case.configuration()),
    };
    let entries = case.with(|blueprint| blueprint.subject(class).entries(&measured));
    case.results.extend(entries);
}

#[test]
fn what_determines_the_speed_is_measured_again_when_it_changes() {
    let mut case = Case::new();
    case.ended("Complete");
    measured_as_it_is(&mut case, &class("sm_89"));
    assert_eq!(reason(&case.now()), ConditionReason::BenchmarkSucceeded);

    let changes: [Change; 6] = [
        ("image", |model| model.spec.image = Some("engine:2".into())),
        ("digest", |model| model.spec.image_digest = Some(format!("sha256:{}", "0".repeat(64)))),
        ("arguments", |model| drop(model.spec.config.insert("args".into(), json!(["--x"])))),
        ("context", |model| drop(model.spec.config.insert("contextSize".into(), json!(4096)))),
        ("quantization", |model| {
            drop(model.spec.config.insert("quantization".into(), json!("awq")));
        }),
        ("weights", |model| model.spec.source = Some("HF://org/other".into())),
    ];
    let before = case.model.clone();
    for (what, change) in changes {
        case.model = before.clone();
        change(&mut case.model);
        let next = case.now();
        let job = case.jobs[0].metadata.name.clone();
        assert_eq!(
            (reason(&next), &next.job),
            (ConditionReason::BenchmarkPending, &None),
            "{what}"
        );
        assert_eq!(next.outdated, job, "{what}: the old Job is in the way");
        assert_eq!(next.measured.map(|found| found.tokens_per_second), Some(42.0), "it is known");
    }
    let old = std::mem::take(&mut case.jobs);
    case.settled = false;
    let next = case.now();
    assert_eq!((reason(&next), &next.job), (ConditionReason::BenchmarkPending, &None), "too early");
    case.settled = true;
    let anew = case.started();
    assert_eq!(anew.metadata.name, old[0].metadata.name);
    case.jobs = vec![anew];
    assert_eq!(
        (reason(&case.now()), case.now().outdated),
        (ConditionReason::BenchmarkRunning, None)
    );
    measured_as_it_is(&mut case, &class("sm_89"));
    assert_eq!(reason(&case.now()), ConditionReason::BenchmarkSucceeded);
}

#[test]
fn what_does_not_determine_the_speed_changes_no_result() {
    let mut case = Case::new();
    measured_as_it_is(&mut case, &class("sm_89"));
    case.model.spec.config.insert(Backend::SEQUENCES.to_owned(), json!(4));
    case.model.metadata.labels = Some([("team".to_owned(), "a".to_owned())].into());
    case.model.spec.service_labels = vec!["chat".to_owned()];
    assert_eq!(reason(&case.now()), ConditionReason::BenchmarkSucceeded);
}

#[test]
fn results_and_jobs_that_say_not_of_what_they_are_stay_valid() {
    let mut case = Case::new();
    case.ended("Failed");
    case.jobs[0].metadata.annotations = None;
    let next = case.now();
    assert_eq!((reason(&next), next.outdated), (ConditionReason::BenchmarkFailed, None));
    case.measured(&class("sm_89"), "42.00");
    assert_eq!(reason(&case.now()), ConditionReason::BenchmarkSucceeded);
}
