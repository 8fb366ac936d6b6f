//! The Job that measures how fast a model is on the kind of node that serves it. It asks through the gateway, as
//! clients do, and needs neither the model's nodes nor its GPUs.

use flexinfer_crds::keys;
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    EnvVar, EnvVarSource, PodSecurityContext, PodSpec, PodTemplateSpec, SeccompProfile,
    SecretKeySelector,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::environment::variable;
use super::initial::ours;
use super::metadata::{Texts, metadata, stamped};
use super::settings::SecretKey;
use super::{Blueprint, names};
use crate::backends::Api;
use crate::placement::benchmarks::{DeviceClass, Subject};

/// Which part of FlexInfer the Job belongs to.
pub(crate) const COMPONENT: &str = "benchmark";

/// A benchmark that was not done after so long is given up, in seconds: an hour, with the model's load in it.
const DEADLINE: i64 = 3600;

/// How often a Job is tried by the cluster before it counts as failed.
const TRIES: i32 = 2;

impl Blueprint<'_> {
    /// What the model's results on nodes of `class` are found by: the labels of its pods, which the scheduler
    /// looks at.
    pub fn subject(&self, class: &DeviceClass) -> Subject {
        Subject {
            backend: names::label_value(self.backend_name()),
            model: names::label_value(&self.effective.id.name),
            device_class: class.clone(),
        }
    }

    /// The Job that measures the model on nodes of `class`, one for each of them; or why there can be none.
    pub fn benchmark_job(&self, class: &DeviceClass) -> Result<Job, &'static str> {
        let settings = &self.settings.benchmarks;
        if !self.backend.starts_engine() {
            return Err("somebody else runs its engine, so that nobody knows where it runs");
        }
        if !self.backend.apis().contains(&Api::Chat) {
            return Err("its engine has no chats, so that there are no tokens to count");
        }
        let account = settings
            .service_account
            .as_deref()
            .ok_or("set BENCHMARK_SERVICE_ACCOUNT on the controller")?;
        let gateway = settings.gateway.as_deref().ok_or("set PROXY_URL on the controller")?;
        let image = self
            .settings
            .images
            .benchmarker()
            .ok_or("set BENCHMARK_IMAGE or FLEXINFER_NODE_IMAGE on the controller")?;
        let subject = self.subject(class);
        let mut variables = vec![
            variable("PROXY_URL", gateway),
            variable("POD_NAMESPACE", &self.effective.id.namespace),
        ];
        variables.extend(settings.key.as_ref().map(|key| from_secret("PROXY_API_KEY", key)));
        let container =
            ours("benchmark", &image, &self.benchmark_arguments(&subject), variables, Vec::new());
        let pod = PodSpec {
            containers: vec![container],
            restart_policy: Some("Never".to_owned()),
            service_account_name: Some(account.to_owned()),
            enable_service_links: Some(false),
            image_pull_secrets: self.pull_secrets().ok().flatten(),
            security_context: Some(PodSecurityContext {
                seccomp_profile: Some(SeccompProfile {
                    type_: "RuntimeDefault".to_owned(),
                    localhost_profile: None,
                }),
                ..PodSecurityContext::default()
            }),
            ..PodSpec::default()
        };
        Ok(self.measuring(&subject, pod))
    }

    fn benchmark_arguments(&self, subject: &Subject) -> Vec<String> {
        let settings = &self.settings.benchmarks;
        let (namespace, name) = (&self.effective.id.namespace, &self.effective.id.name);
        vec![
            "bench".to_owned(),
            format!("--model={}", subject.model),
            // Another namespace may have a model of the same name; this name is always the model's own.
            format!("--model-name={namespace}/{name}"),
            format!("--backend={}", subject.backend),
            format!("--configmap={}", settings.results),
            format!("--results-namespace={}", settings.results_namespace),
        ]
    }

    fn measuring(&self, subject: &Subject, pod: PodSpec) -> Job {
        let key = subject.key();
        let digits = key.trim_start_matches(keys::BENCHMARK_KEY_PREFIX).get(..8);
        let suffix = format!("-{COMPONENT}-{}", digits.unwrap_or_default());
        let name = names::with_suffix(&self.effective.id.name, &suffix);
        // Not the model's own label: its Service would find the Job's pods.
        let labels = Texts::from([
            (keys::MANAGED_BY.to_owned(), keys::MANAGED_BY_FLEXINFER.to_owned()),
            (keys::COMPONENT.to_owned(), COMPONENT.to_owned()),
            ("app".to_owned(), keys::BENCHMARKS_APP.to_owned()),
        ]);
        let spec = JobSpec {
            active_deadline_seconds: Some(DEADLINE),
            backoff_limit: Some(TRIES),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
                spec: Some(pod),
            },
            ..JobSpec::default()
        };
        let metadata = metadata(self.model, self.effective, name, COMPONENT);
        stamped(Job { metadata, spec: Some(spec), status: None })
    }
}

fn from_secret(name: &str, key: &SecretKey) -> EnvVar {
    let selector =
        SecretKeySelector { name: key.name.clone(), key: key.key.clone(), optional: None };
    let source = EnvVarSource { secret_key_ref: Some(selector), ..EnvVarSource::default() };
    EnvVar { name: name.to_owned(), value: None, value_from: Some(source) }
}
