//! The pod that an engine runs in.

use flexinfer_crds::keys;
use k8s_openapi::api::core::v1::{
    LocalObjectReference, PodSecurityContext, PodSpec, PodTemplateSpec, SeccompProfile, Toleration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use super::blueprint::FILES;
use super::files::files_hash;
use super::metadata::Texts;
use super::nodes::{affinity, affinity_to_nodes};
use super::volumes::{Mounted, config_map};
use super::weights::Filling;
use super::{Blueprint, Refusal, names};
use crate::backends::{Config, Launch, Vendor};
use crate::hardware::product_label;
use crate::ids::GroupId;

/// The groups that own AMD's devices on common distributions: `render` and, on older ones, `video`.
const AMD_GROUPS: [i64; 2] = [109, 992];

/// Seconds that an engine has to end in, beyond those that it may go on with what it serves.
const LAST_WORDS: u64 = 30;

impl Blueprint<'_> {
    /// The pod for what `launch` says.
    pub(super) fn pod(&self, launch: &Launch) -> Result<PodTemplateSpec, Refusal> {
        let mut mounted = Mounted::default();
        let mut initial = Vec::new();
        let flash = self.flash()?;
        if let Some(volume) = self.weights_volume() {
            // What a Job has fetched is found whole at once; what no Job has, the pod fetches itself.
            // What was made of them does not need them any more.
            if let Filling::AtStart(works) | Filling::ByJob(works) = &self.weights.filling
                && self.weights.quantized.is_none()
            {
                let steps = self.steps(works)?;
                initial.extend(steps.containers);
                mounted.volumes.extend(steps.volumes);
            }
            match flash {
                Some(flash) => {
                    mounted.volumes.push(volume);
                    initial.push(flash.loader);
                    mounted.add(flash.memory, &self.weights.mount, !self.weights.writable);
                }
                None => mounted.add(volume, &self.weights.mount, !self.weights.writable),
            }
        }
        self.shared_memory(&mut mounted);
        self.compiled_kernels(&mut mounted)?;
        if !launch.files.is_empty() {
            mounted.add(config_map("files", &self.files_name()), FILES, true);
        }
        let volumes = std::mem::take(&mut mounted.volumes);
        let engine = self.engine(launch, mounted)?;
        let limit = self.effective.drain_limit.as_secs().saturating_add(LAST_WORDS);
        let mut surroundings = self.surroundings()?;
        let spec = PodSpec {
            init_containers: Some(initial).filter(|initial| !initial.is_empty()),
            containers: vec![engine],
            volumes: Some(volumes),
            termination_grace_period_seconds: i64::try_from(limit).ok(),
            topology_spread_constraints: self.spreading(),
            affinity: affinity(surroundings.affinity.take(), self.together()),
            ..surroundings
        };
        Ok(PodTemplateSpec { metadata: Some(self.pod_metadata(launch)), spec: Some(spec) })
    }

    /// What every pod of the model has, the engine's and those of its Jobs: where it may run, what its images
    /// are pulled with, and what it may do (K8S-19).
    pub(super) fn surroundings(&self) -> Result<PodSpec, Refusal> {
        let selector = selected(&self.model.spec.node_selector);
        let gpus = self.placement.count > 0;
        Ok(PodSpec {
            node_selector: Some(selector).filter(|selector| !selector.is_empty()),
            tolerations: Some(self.tolerations()).filter(|tolerations| !tolerations.is_empty()),
            affinity: affinity_to_nodes(&self.placement.rules),
            runtime_class_name: self.placement.runtime_class.clone().filter(|_| gpus),
            priority_class_name: self.priority_class()?,
            scheduler_name: self.settings.scheduler.clone(),
            image_pull_secrets: self.pull_secrets()?,
            security_context: Some(PodSecurityContext {
                seccomp_profile: Some(SeccompProfile {
                    type_: "RuntimeDefault".to_owned(),
                    localhost_profile: None,
                }),
                supplemental_groups: (self.placement.vendor == Vendor::Amd && gpus)
                    .then(|| AMD_GROUPS.to_vec()),
                ..PodSecurityContext::default()
            }),
            automount_service_account_token: Some(false),
            // A Service called `vllm` would otherwise set VLLM_PORT, which vLLM reads.
            enable_service_links: Some(false),
            ..PodSpec::default()
        })
    }

    /// What the Service and the Deployment find the pods by. It never changes.
    pub(super) fn selector(&self) -> Texts {
        selector(&self.effective.id.name)
    }

    fn pod_metadata(&self, launch: &Launch) -> ObjectMeta {
        let mut labels = self.selector();
        labels.extend([
            (keys::MANAGED_BY.to_owned(), keys::MANAGED_BY_FLEXINFER.to_owned()),
            (keys::COMPONENT.to_owned(), "engine".to_owned()),
            (keys::BACKEND.to_owned(), names::label_value(self.backend_name())),
        ]);
        if let GroupId::Shared { name, .. } = &self.effective.group {
            labels.insert(keys::GPU_GROUP.to_owned(), names::label_value(name));
        }
        let mut annotations = Texts::from([
            (keys::MODEL.to_owned(), self.effective.id.name.to_string()),
            (keys::BACKEND.to_owned(), self.backend_name().to_owned()),
        ]);
        let estimate = self.model.spec.gpu.as_ref().and_then(|gpu| gpu.vram_estimate_mb);
        if let Some(estimate) = estimate {
            annotations.insert(keys::VRAM_ESTIMATE.to_owned(), estimate.to_string());
        }
        if let Some(format) = self.format() {
            labels.insert(keys::FORMAT.to_owned(), names::label_value(&format));
            annotations.insert(keys::FORMAT.to_owned(), format);
        }
        if !launch.files.is_empty() {
            // An engine reads its files at its start: when they change, it has to be started anew.
            annotations.insert(keys::SPEC_HASH.to_owned(), files_hash(launch));
        }
        ObjectMeta { labels: Some(labels), annotations: Some(annotations), ..ObjectMeta::default() }
    }

    /// The format of quantized weights, as the scheduler compares it: what the Model has them made into, else
    /// what it tells the engine that they are.
    fn format(&self) -> Option<String> {
        if let Some(quantize) = &self.model.spec.quantize {
            return Some(format!("{:?}", quantize.format).to_uppercase());
        }
        let config = Config::of(Some(&self.model.spec.config));
        let told = config.text("quantization").ok().flatten()?.to_lowercase();
        // An engine has several programs for one format: awq_marlin, gptq_bitblas.
        let known = ["awq", "gptq"].into_iter().find(|format| told.starts_with(format));
        Some(known.unwrap_or(&told).to_uppercase()).filter(|format| !format.is_empty())
    }

    /// The backend as it is called everywhere; of an unknown one, as the Model calls it.
    pub(super) fn backend_name(&self) -> &str {
        match self.backend {
            crate::backends::Backend::Command => &self.model.spec.backend,
            known => known.name(),
        }
    }

    fn tolerations(&self) -> Vec<Toleration> {
        let mut tolerations = Vec::new();
        if let Some(resource) =
            self.placement.resource.as_ref().filter(|_| self.placement.count > 0)
        {
            tolerations.push(Toleration {
                key: Some("dedicated".to_owned()),
                operator: Some("Equal".to_owned()),
                value: Some("gpu".to_owned()),
                effect: Some("NoSchedule".to_owned()),
                ..Toleration::default()
            });
            // Clouds keep other pods off such nodes by a taint with the resource's name.
            tolerations.push(Toleration {
                key: Some(resource.clone()),
                operator: Some("Exists".to_owned()),
                effect: Some("NoSchedule".to_owned()),
                ..Toleration::default()
            });
        }
        let own = self.model.spec.tolerations.iter();
        for toleration in own {
            if !tolerations.contains(toleration) {
                tolerations.push(toleration.clone());
            }
        }
        tolerations
    }

    pub(super) fn label_selector(&self) -> LabelSelector {
        LabelSelector { match_labels: Some(self.selector()), match_expressions: None }
    }

    fn priority_class(&self) -> Result<Option<String>, Refusal> {
        let Some(name) = self.annotation(keys::SERVING_PRIORITY_CLASS) else { return Ok(None) };
        object_names(keys::SERVING_PRIORITY_CLASS, [name]).map(|names| names.into_iter().next())
    }

    pub(super) fn pull_secrets(&self) -> Result<Option<Vec<LocalObjectReference>>, Refusal> {
        let own = self.annotation(keys::PULL_SECRETS).unwrap_or_default();
        let own = own.split(',').map(str::trim).filter(|name| !name.is_empty());
        let mut secrets = self.settings.pull_secrets.clone();
        for name in object_names(keys::PULL_SECRETS, own)? {
            if !secrets.contains(&name) {
                secrets.push(name);
            }
        }
        let secrets: Vec<_> =
            secrets.into_iter().map(|name| LocalObjectReference { name }).collect();
        Ok(Some(secrets).filter(|secrets| !secrets.is_empty()))
    }
}

/// A `nodeSelector` as nodes are labelled: a GPU may be named as it is sold (K8S-08).
pub(crate) fn selected(selector: &Texts) -> Texts {
    let labelled = selector.iter().map(|(key, value)| {
        let product = (key == keys::GPU_PRODUCT).then(|| product_label(value)).flatten();
        (key.clone(), product.unwrap_or_else(|| value.clone()))
    });
    labelled.collect()
}

/// What finds the pods of the model called `name`.
pub(super) fn selector(name: &str) -> Texts {
    Texts::from([(keys::MODEL.to_owned(), names::label_value(name))])
}

/// The names in an annotation, each of which an object may bear.
fn object_names<'n>(
    annotation: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Result<Vec<String>, Refusal> {
    let checked = names.into_iter().map(|name| {
        if names::is_object_name(name) {
            return Ok(name.to_owned());
        }
        let message =
            format!("`{name}` cannot be the name of an object: use a-z, 0-9, `-` and `.`");
        Err(Refusal::field(&format!("metadata.annotations[{annotation}]"), &message))
    });
    checked.collect()
}
