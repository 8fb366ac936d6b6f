//! When a model is to be measured, and the Job that does it: one per model and kind of node, where the Model
//! asks for it (annotation `flexinfer.ai/benchmark: auto`) and no result is there.

use std::collections::BTreeMap;

use flexinfer_crds::{Model, keys};
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{Container, EnvVar, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use super::benchmarks::{self, DeviceClass, Subject};

/// The longest name of an object whose pods carry it in a label.
const LONGEST_NAME: usize = 63;

/// A benchmark that was not done after so long is given up, in seconds: an hour, with the model's load in it.
const DEADLINE: i64 = 3600;

/// How Jobs are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSettings {
    /// `BENCHMARK_IMAGE`, an image of `flexinfer-node`; without one nothing is measured.
    pub image: Option<String>,
    /// `BENCHMARK_SERVICE_ACCOUNT`, which may read pods and nodes and write ConfigMaps; without one nothing is
    /// measured.
    pub service_account: Option<String>,
    /// Where the gateway is.
    pub gateway_url: String,
    /// `BENCHMARK_RESULTS_CONFIGMAP`.
    pub results: String,
    /// The namespace of that ConfigMap.
    pub results_namespace: String,
}

/// What is known when it is decided.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The kind of node that serves the model now, if one kind does.
    pub serving: Option<&'a DeviceClass>,
    /// The ConfigMap of all results.
    pub results: &'a BTreeMap<String, String>,
    /// The model's benchmark Jobs.
    pub jobs: &'a [Job],
}

/// What follows.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// The Model does not ask for it.
    Unwanted,
    /// It is measured already, at so many tokens per second.
    Measured(f64),
    /// Nobody can do it, because of a setting that is missing.
    Unable(&'static str),
    /// It is not served by one kind of node, so there is nothing to measure yet.
    NotServing,
    /// A Job is at it.
    Running {
        /// Its name.
        job: String,
    },
    /// A Job has failed; it stays for its log, and nothing is tried again until it is deleted.
    Failed {
        /// Its name.
        job: String,
    },
    /// This Job is to be made.
    Start(Box<Job>),
}

/// What follows for `model`, whose engine's name on pods is `backend`.
pub fn next(model: &Model, backend: &str, observed: Observed<'_>, settings: &JobSettings) -> Next {
    let wish = model.metadata.annotations.as_ref().and_then(|all| all.get(keys::BENCHMARK));
    if wish.map(String::as_str) != Some("auto") {
        return Next::Unwanted;
    }
    let (Some(image), Some(account)) = (&settings.image, &settings.service_account) else {
        return Next::Unable("set BENCHMARK_IMAGE and BENCHMARK_SERVICE_ACCOUNT on the controller");
    };
    let Some(class) = observed.serving else { return Next::NotServing };
    let name = model.metadata.name.clone().unwrap_or_default();
    let subject =
        Subject { backend: backend.to_owned(), model: name.clone(), device_class: class.clone() };
    if let Some(rate) = benchmarks::tokens_per_second(observed.results, &subject) {
        return Next::Measured(rate);
    }
    let job = job_name(&name, &subject);
    let known = observed.jobs.iter().find(|known| known.metadata.name.as_ref() == Some(&job));
    match known {
        Some(known) if failed(known) => Next::Failed { job },
        Some(_) => Next::Running { job },
        None => Next::Start(Box::new(written(model, &subject, job, image, account, settings))),
    }
}

/// `<model>-benchmark-<8 digits of the result's key>`; a long model's name is cut, the digits tell it apart.
fn job_name(model: &str, subject: &Subject) -> String {
    let key = subject.key();
    let digits = key.trim_start_matches(keys::BENCHMARK_KEY_PREFIX).get(..8).unwrap_or_default();
    let end = format!("-benchmark-{digits}");
    let room = LONGEST_NAME.saturating_sub(end.len());
    let model: String = model.chars().take(room).collect();
    format!("{}{end}", model.trim_end_matches(['-', '.']))
}

fn failed(job: &Job) -> bool {
    let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|one| one.type_ == "Failed" && one.status == "True")
}

fn written(
    model: &Model,
    subject: &Subject,
    job: String,
    image: &str,
    account: &str,
    settings: &JobSettings,
) -> Job {
    let labels = BTreeMap::from([
        (keys::MANAGED_BY.to_owned(), keys::MANAGED_BY_FLEXINFER.to_owned()),
        (keys::COMPONENT.to_owned(), "benchmark".to_owned()),
        ("app".to_owned(), keys::BENCHMARKS_APP.to_owned()),
    ]);
    let mut arguments = vec!["bench".to_owned()];
    for (flag, value) in [
        ("--model", subject.model.as_str()),
        ("--backend", &subject.backend),
        ("--configmap", &settings.results),
        ("--results-namespace", &settings.results_namespace),
    ] {
        arguments.extend([flag.to_owned(), value.to_owned()]);
    }
    let variable = |name: &str, value: &str| EnvVar {
        name: name.to_owned(),
        value: Some(value.to_owned()),
        value_from: None,
    };
    let namespace = model.metadata.namespace.clone().unwrap_or_default();
    let container = Container {
        name: "benchmark".to_owned(),
        image: Some(image.to_owned()),
        args: Some(arguments),
        env: Some(vec![
            variable("PROXY_URL", &settings.gateway_url),
            variable("POD_NAMESPACE", &namespace),
        ]),
        ..Container::default()
    };
    let pod = PodSpec {
        containers: vec![container],
        restart_policy: Some("Never".to_owned()),
        service_account_name: Some(account.to_owned()),
        ..PodSpec::default()
    };
    Job {
        metadata: ObjectMeta {
            name: Some(job),
            namespace: model.metadata.namespace.clone(),
            labels: Some(labels.clone()),
            owner_references: owner(model).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(JobSpec {
            active_deadline_seconds: Some(DEADLINE),
            backoff_limit: Some(2),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
                spec: Some(pod),
            },
            ..JobSpec::default()
        }),
        status: None,
    }
}

/// The Job goes with its Model; a Model that is stored nowhere owns nothing.
fn owner(model: &Model) -> Option<OwnerReference> {
    Some(OwnerReference {
        api_version: "inference.flexinfer.ai/v1alpha2".to_owned(),
        kind: "Model".to_owned(),
        name: model.metadata.name.clone()?,
        uid: model.metadata.uid.clone()?,
        controller: Some(true),
        block_owner_deletion: Some(true),
    })
}
