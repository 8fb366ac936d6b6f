//! The Jobs that see to a model's weights before an engine is started. They run where the model may run, so
//! that a volume that is made for them is made there (K8S-16), and need no GPU for it.

use flexinfer_crds::keys;
use k8s_openapi::api::batch::v1::{
    Job, JobSpec, PodFailurePolicy, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule,
};
use k8s_openapi::api::core::v1::{Container, PodSecurityContext, PodSpec, PodTemplateSpec, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::initial::{Steps, ours};
use super::metadata::{Texts, metadata, stamped};
use super::volumes::{MODEL, mounted};
use super::weights::{Filling, MODELS, Work};
use super::{Blueprint, Refusal, names};
use crate::activation::Reason;

/// How often a Job is tried by the cluster before it counts as failed.
const TRIES: i32 = 3;

/// What a container leaves here at its end is in its pod's status.
const TERMINATION_MESSAGE: &str = "/dev/termination-log";

/// The group that may write to a claim that a Job fills.
pub(super) const GROUP: i64 = 65_532;

/// The component that a Job is which fills a claim or looks at it.
pub(in crate::planning) const FILLER: &str = "cache-job";
/// The component that a Job is which quantizes.
pub(in crate::planning) const QUANTIZER: &str = "quantize-job";

impl Blueprint<'_> {
    /// The Job that fills or looks at the claim with this uid; `None` where no Job has to.
    pub fn filling_job(&self, claim: &str) -> Result<Option<Job>, Refusal> {
        let (suffix, steps) = match &self.weights.filling {
            Filling::Nothing | Filling::AtStart(_) => return Ok(None),
            Filling::Checked(path) => ("-cache-check", self.check(path)?),
            Filling::ByJob(works) => (suffix(works), self.steps(works)?),
        };
        let work = serde_json::json!([claim, format!("{:?}", self.weights.filling)]);
        let mut pod = self.job_pod(reporting(steps))?;
        if self.weights.writable {
            pod.security_context.get_or_insert_default().fs_group = Some(GROUP);
        }
        Ok(Some(self.job(suffix, FILLER, &work, pod)))
    }

    fn check(&self, path: &str) -> Result<Steps, Refusal> {
        let image = self.settings.images.node()?;
        let args = ["check".to_owned(), path.to_owned()];
        let mounts = vec![mounted(MODEL, MODELS, true)];
        let container = ours("check", &image, &args, Vec::new(), mounts);
        Ok(Steps { containers: vec![container], volumes: Vec::new() })
    }

    /// A pod that takes `steps` one after the other, with the weights' volume.
    pub(super) fn job_pod(&self, mut steps: Steps) -> Result<PodSpec, Refusal> {
        let last: Vec<Container> = steps.containers.pop().into_iter().collect();
        let mut volumes: Vec<Volume> = steps.volumes;
        if !volumes.iter().any(|volume| volume.name == MODEL) {
            volumes.extend(self.weights_volume());
        }
        let mut surroundings = self.surroundings()?;
        surroundings.runtime_class_name = None;
        let context = surroundings.security_context.get_or_insert_default();
        *context = PodSecurityContext { supplemental_groups: None, ..context.clone() };
        Ok(PodSpec {
            init_containers: Some(steps.containers).filter(|steps| !steps.is_empty()),
            containers: last,
            volumes: Some(volumes),
            restart_policy: Some("Never".to_owned()),
            ..surroundings
        })
    }

    /// A Job of `pod`. `work` is what it does: a Job that did the same, with another image, need not be done
    /// again.
    pub(super) fn job(
        &self,
        suffix: &str,
        component: &str,
        work: &serde_json::Value,
        pod: PodSpec,
    ) -> Job {
        let name = names::with_suffix(&self.effective.id.name, suffix);
        let mut metadata = metadata(self.model, self.effective, name, component);
        let annotations = metadata.annotations.get_or_insert_default();
        let source = self.model.spec.source.clone().unwrap_or_default();
        annotations.insert(keys::JOB_SOURCE.to_owned(), source);
        let work = names::hash(work.to_string().as_bytes(), 16);
        annotations.insert(keys::JOB_WORK.to_owned(), work);
        let labels = Texts::from([
            (keys::MANAGED_BY.to_owned(), keys::MANAGED_BY_FLEXINFER.to_owned()),
            (keys::COMPONENT.to_owned(), component.to_owned()),
            // Not the model's own label: its Service would find the Job's pods.
            (keys::CACHE.to_owned(), names::label_value(&self.effective.id.name)),
        ]);
        let template = PodTemplateSpec {
            metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
            spec: Some(pod),
        };
        let spec = JobSpec {
            backoff_limit: Some(TRIES),
            pod_failure_policy: Some(policy()),
            template,
            ..JobSpec::default()
        };
        stamped(Job { metadata, spec: Some(spec), status: None })
    }
}

/// Steps that say at their end how large what they fetched or copied is, where the pod's status shows it.
fn reporting(mut steps: Steps) -> Steps {
    let reports = |word: &String| ["fetch", "flash"].contains(&word.as_str());
    let arguments = steps.containers.iter_mut().filter_map(|container| container.args.as_mut());
    for arguments in arguments.filter(|words| words.first().is_some_and(reports)) {
        arguments.insert(1, format!("--report={TERMINATION_MESSAGE}"));
    }
    steps
}

fn suffix(works: &[Work]) -> &'static str {
    match works.first() {
        Some(Work::Copy { .. }) => "-cache-copy",
        _ => "-cache-prefetch",
    }
}

/// A node that goes away is nobody's fault.
pub(super) fn disruptions() -> PodFailurePolicy {
    let disrupted = k8s_openapi::api::batch::v1::PodFailurePolicyOnPodConditionsPattern {
        type_: "DisruptionTarget".to_owned(),
        status: Some("True".to_owned()),
    };
    let rule = PodFailurePolicyRule {
        action: "Ignore".to_owned(),
        on_pod_conditions: Some(vec![disrupted]),
        ..PodFailurePolicyRule::default()
    };
    PodFailurePolicy { rules: vec![rule] }
}

/// What our own program says by its exit status is not tried again either: a gated repository stays gated
/// (K8S-20).
fn policy() -> PodFailurePolicy {
    let mut values: Vec<_> = Reason::lasting_exit_statuses().map(i32::from).collect();
    values.sort_unstable();
    let lasting = PodFailurePolicyOnExitCodesRequirement {
        operator: "In".to_owned(),
        values,
        container_name: None,
    };
    let mut policy = disruptions();
    policy.rules.push(PodFailurePolicyRule {
        action: "FailJob".to_owned(),
        on_exit_codes: Some(lasting),
        ..PodFailurePolicyRule::default()
    });
    policy
}
