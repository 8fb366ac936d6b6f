//! Benchmark Jobs.

use flexinfer_crds::Model;
use k8s_openapi::api::batch::v1::Job;

use super::super::benchmark_job::{JobSettings, Next, Observed, next};
use super::super::benchmarks::{DeviceClass, Subject};
use super::*;

fn model(name: &str, wish: Option<&str>) -> Model {
    let annotations = wish.map(|wish| json!({ keys::BENCHMARK: wish })).unwrap_or(json!({}));
    serde_json::from_value(json!({
        "apiVersion": "inference.flexinfer.ai/v1alpha2",
        "kind": "Model",
        "metadata": { "name": name, "namespace": "models", "uid": "u-1", "annotations": annotations },
        "spec": { "backend": "vllm", "source": "HF://org/name" },
    }))
    .unwrap()
}

fn settings() -> JobSettings {
    JobSettings {
        image: Some("flexinfer/node:1".into()),
        service_account: Some("benchmarker".into()),
        gateway_url: "http://gateway".into(),
        results: keys::BENCHMARK_RESULTS.into(),
        results_namespace: "flexinfer-system".into(),
    }
}

fn after(model: &Model, results: &BTreeMap<String, String>, jobs: &[Job]) -> Next {
    let class = node(&[]).class;
    next(model, "vllm", Observed { serving: Some(&class), results, jobs }, &settings())
}

fn started(next: Next) -> Job {
    match next {
        Next::Start(job) => *job,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_model_that_asks_for_it_is_measured_once_for_each_kind_of_node() {
    let model = model("llama", Some("auto"));
    let job = started(after(&model, &BTreeMap::new(), &[]));
    let name = job.metadata.name.clone().unwrap();
    assert!(name.starts_with("llama-benchmark-"), "{name}");
    assert_eq!(job.metadata.owner_references.as_ref().unwrap()[0].name, "llama");
    let pod = job.spec.as_ref().unwrap().template.spec.as_ref().unwrap();
    assert_eq!(pod.service_account_name.as_deref(), Some("benchmarker"));
    let words = pod.containers[0].args.as_ref().unwrap().join(" ");
    assert_eq!(
        words,
        "bench --model llama --backend vllm --configmap flexinfer-benchmark-results \
         --results-namespace flexinfer-system"
    );
    let running = std::slice::from_ref(&job);
    assert_eq!(after(&model, &BTreeMap::new(), running), Next::Running { job: name.clone() });

    let other = node(&[(keys::GPU_ARCHITECTURE, "sm_90")]).class;
    let results = BTreeMap::new();
    let observed = Observed { serving: Some(&other), results: &results, jobs: running };
    let second = started(next(&model, "vllm", observed, &settings()));
    assert_ne!(second.metadata.name, Some(name), "another kind of node is another Job");
}

#[test]
fn what_is_measured_is_not_measured_again_and_a_failed_job_stays() {
    let model = model("llama", Some("auto"));
    let subject =
        Subject { backend: "vllm".into(), model: "llama".into(), device_class: node(&[]).class };
    let results = [(subject.key(), "42.00".to_owned())].into();
    assert_eq!(after(&model, &results, &[]), Next::Measured(42.0));

    let mut job = started(after(&model, &BTreeMap::new(), &[]));
    let name = job.metadata.name.clone().unwrap();
    let status = json!({ "conditions": [{ "type": "Failed", "status": "True" }] });
    job.status = Some(serde_json::from_value(status).unwrap());
    assert_eq!(after(&model, &BTreeMap::new(), &[job]), Next::Failed { job: name });
}

#[test]
fn nothing_is_measured_where_nobody_asked_or_nobody_serves_or_nobody_may() {
    let results = BTreeMap::new();
    for wish in [None, Some("manual"), Some("")] {
        assert_eq!(after(&model("llama", wish), &results, &[]), Next::Unwanted);
    }
    let model = model("llama", Some("auto"));
    let class = DeviceClass::default();
    let idle = Observed { serving: None, results: &results, jobs: &[] };
    assert_eq!(next(&model, "vllm", idle, &settings()), Next::NotServing);
    let observed = Observed { serving: Some(&class), results: &results, jobs: &[] };
    let unable = JobSettings { service_account: None, ..settings() };
    assert!(matches!(next(&model, "vllm", observed, &unable), Next::Unable(_)));
}

#[test]
fn the_name_of_a_job_fits_whatever_the_models_is() {
    for length in [1, 42, 43, 44, 63, 253] {
        let model = model(&"a-".repeat(length / 2 + 1), Some("auto"));
        let name = started(after(&model, &BTreeMap::new(), &[])).metadata.name.unwrap();
        assert!(name.len() <= 63 && !name.contains("--"), "{name}");
    }
}
