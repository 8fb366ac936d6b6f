//! How much of a model's weights has come, as its status says it.

use flexinfer_crds::model::{CacheProgress, LoadingSubstage};

use super::weights::fetching;
use super::*;
use crate::activation::Share;

fn share(done: u64) -> Share {
    Share::new(done << 20, 100 << 20).unwrap()
}

fn said(wanted: &Wanted) -> Option<CacheProgress> {
    wanted.status.cache.as_ref().and_then(|cache| cache.progress)
}

fn mebibytes(done: i64) -> CacheProgress {
    CacheProgress { done_bytes: done << 20, total_bytes: 100 << 20 }
}

fn cached(wanted: &Wanted) -> &str {
    let mut conditions = wanted.status.conditions.iter();
    &conditions.find(|found| found.type_ == "Cached").unwrap().message
}

/// A pod that runs this container of a template, and nothing else of it.
fn running(template: &k8s_openapi::api::core::v1::PodTemplateSpec, container: &str) -> Pod {
    let status = json!([{
        "name": container, "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "running": {} },
    }]);
    let status = json!({
        "phase": "Running", "podIP": "10.0.0.7",
        "containerStatuses": status, "initContainerStatuses": status,
    });
    let mut pod = Pod {
        spec: template.spec.clone(),
        status: Some(serde_json::from_value(status).unwrap()),
        ..Pod::default()
    };
    pod.metadata.uid = Some("p".to_owned());
    pod
}

/// A model whose Job fetches in a pod that can be asked.
fn fetching_in_a_pod() -> Member {
    let mut model = fetching();
    model.jobs[0].status = Some(serde_json::from_value(json!({ "active": 1 })).unwrap());
    let mut pod = running(&model.jobs[0].spec.as_ref().unwrap().template, "fetch");
    let name = ("batch.kubernetes.io/job-name".to_owned(), "m-cache-prefetch".to_owned());
    pod.metadata.labels = Some([name].into());
    model.job_pods.push(pod);
    model
}

#[test]
fn what_the_pod_of_a_job_says_is_in_the_status_while_it_runs() {
    let mut model = fetching_in_a_pod();
    let silent = planned(&model);
    assert_eq!((said(&silent), cached(&silent)), (None, "fetching the weights is under way"));
    model.progress = Some(Progress::begin("p", share(40), at(20)));
    model.model.status = Some(silent.status);
    let wanted = planned_at(&model, 30);
    assert_eq!(said(&wanted), Some(mebibytes(40)));
    assert_eq!(cached(&wanted), "fetching the weights is under way: 40.0 MiB of 100.0 MiB");
    assert_eq!(wanted.status.loading_substage, Some(LoadingSubstage::Downloading));
    assert_eq!(wanted.status.loading_progress_at, Some(time(at(20))), "when more had come");
    model.jobs[0].status = Some(ended_as("Complete"));
    model.job_pods[0].status.as_mut().unwrap().container_statuses = None;
    assert_eq!(said(&planned_at(&model, 40)), None);
}

#[test]
fn k8s_22_nothing_is_said_anew_while_nothing_moves() {
    let mut model = fetching_in_a_pod();
    model.progress = Some(Progress::begin("p", share(40), at(0)));
    let first = planned_at(&model, 0).status;
    model.model.status = Some(first.clone());
    assert_eq!(planned_at(&model, 500).status, first);
}

#[test]
fn weights_that_stand_still_are_said_to() {
    let mut model = fetching_in_a_pod();
    let mut progress = Progress::begin("p", share(40), at(0));
    assert!(progress.hear(share(40), at(60)));
    model.progress = Some(progress);
    let wanted = planned_at(&model, 60);
    assert!(cached(&wanted).contains("nothing more has come since 1970-01-12T"), "{wanted:#?}");
    assert_eq!(wanted.status.loading_progress_at, Some(time(at(60))), "it was not known before");
    model.model.status = Some(wanted.status);
    assert_eq!(planned_at(&model, 90).status.loading_progress_at, Some(time(at(60))));
}

#[test]
fn another_controller_says_what_was_said_until_it_has_asked_itself() {
    let mut model = fetching_in_a_pod();
    model.progress = Some(Progress::begin("p", share(40), at(0)));
    let told = planned(&model).status;
    (model.model.status, model.progress) = (Some(told.clone()), None);
    assert_eq!(planned_at(&model, 9).status, told);
    model.job_pods.clear();
    assert_eq!(said(&planned_at(&model, 9)), None, "nobody fetches");
    let model =
        Member { progress: Some(Progress::begin("q", share(1), at(0))), ..fetching_in_a_pod() };
    assert_eq!(said(&planned(&model)), None, "another pod said that");
}

#[test]
fn what_an_engines_own_pod_fetches_first_is_said_too() {
    let spec = json!({
        "backend": "simulator", "source": "HF://org/model", "cache": { "strategy": "Memory" },
        "serverless": { "minReplicas": 1 },
    });
    let mut model = member("m", serde_json::from_value(spec).unwrap());
    let mut there = deployment(&planned(&model)).clone();
    there.spec.replicas = Some(1);
    let mut pod = running(&there.spec.template, "fetch");
    pod.spec.as_mut().unwrap().node_name = Some("n1".to_owned());
    model.deployment = Some(there);
    model.pods.push(pod);
    model.progress = Some(Progress::begin("p", share(40), at(0)));
    let wanted = planned(&model);
    assert_eq!(wanted.status.phase, Some(Phase::Loading));
    assert_eq!(wanted.status.loading_substage, Some(LoadingSubstage::Downloading));
    assert_eq!(said(&wanted), Some(mebibytes(40)));
    let message = wanted.status.message.unwrap();
    assert_eq!(message, "starting; its weights so far: 40.0 MiB of 100.0 MiB");
}
