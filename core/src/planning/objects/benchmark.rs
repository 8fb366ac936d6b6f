//! The Job that measures how fast a model is on the kind of node that serves it. It asks through the gateway, as
//! clients do, and needs neither the model's nodes nor its GPUs.

use std::collections::BTreeMap;

use flexinfer_crds::keys;
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    EnvVar, EnvVarSource, KeyToPath, PodSecurityContext, PodSpec, PodTemplateSpec, SeccompProfile,
    SecretKeySelector, SecretVolumeSource, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;

use super::environment::variable;
use super::initial::ours;
use super::metadata::{Texts, metadata, stamped};
use super::settings::SecretKey;
use super::volumes::Mounted;
use super::{Blueprint, names};
use crate::backends::{Api, Backend};
use crate::placement::benchmarks::{DeviceClass, Subject};

/// Which part of FlexInfer the Job belongs to.
pub(crate) const COMPONENT: &str = "benchmark";

/// Where its pod has the authorities that it believes, and the file of them.
const TRUSTED: &str = "/etc/flexinfer/ca";
const CA: &str = "ca.crt";

/// A benchmark that was not done after so long is given up, in seconds: an hour, with the model's load in it.
const DEADLINE: i64 = 3600;

/// How often a Job is tried by the cluster before it counts as failed.
const TRIES: i32 = 2;

impl Blueprint<'_> {
    /// What the model's results on nodes of `class` are found by: the labels of its pods, which the scheduler
    /// looks at.
    pub fn subject(&self, class: &DeviceClass) -> Subject {
        Subject {
            namespace: self.effective.id.namespace.to_string(),
            backend: names::label_value(self.backend_name()),
            model: names::label_value(&self.effective.id.name),
            device_class: class.clone(),
        }
    }

    /// What determines how fast the model is beside the kind of its node, as a hash: what was measured of another is
    /// no result of this one. How many requests an engine takes at once does not belong to it: they are measured one
    /// after another.
    pub fn configuration(&self) -> Option<String> {
        let spec = &self.model.spec;
        let gpu = self.placement.gpu();
        let image = self.settings.images.engine(spec, self.backend, &gpu).ok()?;
        let config: BTreeMap<_, _> =
            spec.config.iter().filter(|(name, _)| *name != Backend::SEQUENCES).collect();
        let determining = json!({
            "backend": self.backend_name(),
            "image": image,
            "source": spec.source,
            "quantize": spec.quantize,
            "config": config,
            "gpus": self.placement.count,
            "resources": spec.resources,
        });
        Some(names::hash(determining.to_string().as_bytes(), 16))
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
        let mut trusted = Mounted::default();
        if let Some(ca) = &settings.ca {
            trusted.add(authorities(ca), TRUSTED, true);
            variables.push(variable("PROXY_CA", &format!("{TRUSTED}/{CA}")));
        }
        let arguments = self.benchmark_arguments(&subject);
        let container = ours("benchmark", &image, &arguments, variables, trusted.mounts);
        let pod = PodSpec {
            containers: vec![container],
            volumes: Some(trusted.volumes).filter(|volumes| !volumes.is_empty()),
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
        let mut arguments = vec![
            "bench".to_owned(),
            format!("--model={}", subject.model),
            // Another namespace may have a model of the same name; this name is always the model's own.
            format!("--model-name={namespace}/{name}"),
            format!("--backend={}", subject.backend),
            format!("--configmap={}", settings.results),
            format!("--results-namespace={}", settings.results_namespace),
        ];
        let configuration = self.configuration();
        arguments.extend(configuration.map(|hash| format!("--configuration={hash}")));
        arguments
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
        let mut metadata = metadata(self.model, self.effective, name, COMPONENT);
        let annotations = metadata.annotations.get_or_insert_default();
        let work = self.configuration().map(|hash| (keys::JOB_WORK.to_owned(), hash));
        annotations.extend(work);
        stamped(Job { metadata, spec: Some(spec), status: None })
    }
}

/// Only the authorities of a Secret, which may hold the gateway's own key too.
fn authorities(ca: &SecretKey) -> Volume {
    let item = KeyToPath { key: ca.key.clone(), path: CA.to_owned(), ..KeyToPath::default() };
    let secret = SecretVolumeSource {
        secret_name: Some(ca.name.clone()),
        items: Some(vec![item]),
        ..SecretVolumeSource::default()
    };
    Volume { name: "ca".to_owned(), secret: Some(secret), ..Volume::default() }
}

fn from_secret(name: &str, key: &SecretKey) -> EnvVar {
    let selector =
        SecretKeySelector { name: key.name.clone(), key: key.key.clone(), optional: None };
    let source = EnvVarSource { secret_key_ref: Some(selector), ..EnvVarSource::default() };
    EnvVar { name: name.to_owned(), value: None, value_from: Some(source) }
}
