//! The container that the engine runs in.

use std::collections::BTreeMap;

use flexinfer_crds::Quantity;
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EnvVar, ExecAction, Lifecycle, LifecycleHandler,
    ResourceRequirements, SecurityContext, SleepAction,
};
use k8s_openapi::apimachinery::pkg::api::resource;

use super::environment::{about_the_pod, distinct, literal, variable};
use super::probes::{self, PORT};
use super::volumes::Mounted;
use super::weights::{Filling, MODELS};
use super::{Blueprint, Refusal};
use crate::backends::Launch;

/// The container's name.
pub(super) const CONTAINER: &str = "model";

impl Blueprint<'_> {
    /// The engine of `launch` with what is `mounted` for it.
    pub(super) fn engine(&self, launch: &Launch, mounted: Mounted) -> Result<Container, Refusal> {
        let image =
            self.settings.images.engine(&self.model.spec, self.backend, &self.placement.gpu())?;
        let port = i32::from(launch.port);
        let arguments = |words: &[String]| words.iter().map(|word| literal(word)).collect();
        Ok(Container {
            name: CONTAINER.to_owned(),
            image: Some(image),
            image_pull_policy: Some("IfNotPresent".to_owned()),
            // Without a program the image's entry point takes the arguments.
            command: (!launch.program.is_empty()).then(|| vec![literal(&launch.program)]),
            args: (!launch.args.is_empty()).then(|| arguments(&launch.args)),
            env: Some(self.variables(launch, mounted.variables)?),
            ports: Some(vec![ContainerPort {
                name: Some(PORT.to_owned()),
                container_port: port,
                protocol: Some("TCP".to_owned()),
                ..ContainerPort::default()
            }]),
            startup_probe: Some(probes::startup(&launch.probe, launch.startup_limit)),
            readiness_probe: Some(probes::readiness(&launch.probe, self.effective.drain_limit)),
            resources: self.resources(),
            lifecycle: self.lifecycle(launch),
            volume_mounts: Some(mounted.mounts),
            security_context: Some(SecurityContext {
                allow_privilege_escalation: Some(false),
                ..SecurityContext::default()
            }),
            termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
            ..Container::default()
        })
    }

    /// What is done beside the engine: after it was started what its backend says, and before it is told to end
    /// nothing, for as long as what it serves may take. Gateways see at once that the pod ends, and most engines
    /// break off what they have once they are told.
    fn lifecycle(&self, launch: &Launch) -> Option<Lifecycle> {
        let post_start = (!launch.hook.is_empty()).then(|| LifecycleHandler {
            exec: Some(ExecAction { command: Some(launch.hook.clone()) }),
            ..LifecycleHandler::default()
        });
        let seconds = i64::try_from(self.effective.drain_limit.as_secs()).ok();
        let pre_stop = seconds.filter(|seconds| *seconds > 0).map(|seconds| LifecycleHandler {
            sleep: Some(SleepAction { seconds }),
            ..LifecycleHandler::default()
        });
        Some(Lifecycle { post_start, pre_stop, ..Lifecycle::default() })
            .filter(|lifecycle| *lifecycle != Lifecycle::default())
    }

    /// What the pod tells, then what the volumes ask for, then the backend's and the user's own, which win.
    fn variables(&self, launch: &Launch, mounted: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
        let mut variables = about_the_pod();
        let from_hub = matches!(self.weights.filling, Filling::ByJob(_) | Filling::AtStart(_));
        if from_hub && self.weights.writable {
            variables.extend(self.hub());
            let cache = format!("{MODELS}/.cache/huggingface");
            for (name, below) in [
                ("HF_HOME", ""),
                ("HF_HUB_CACHE", "/hub"),
                ("HUGGINGFACE_HUB_CACHE", "/hub"),
                ("TRANSFORMERS_CACHE", "/hub"),
            ] {
                variables.push(variable(name, &format!("{cache}{below}")));
            }
        }
        if let Some(folder) = &self.weights.autoencoder {
            variables.push(variable("VAE_PATH", folder));
        }
        variables.extend(mounted);
        variables.extend(launch.env.iter().map(|(name, value)| variable(name, value)));
        distinct(variables)
    }

    /// What the Model asks for, and its GPUs.
    fn resources(&self) -> Option<ResourceRequirements> {
        let own = self.model.spec.resources.clone().unwrap_or_default();
        let amounts = |amounts: &BTreeMap<String, Quantity>| {
            let amounts = amounts.iter();
            amounts.map(|(name, amount)| (name.clone(), amount.into())).collect::<BTreeMap<_, _>>()
        };
        let (mut limits, mut requests) = (amounts(&own.limits), amounts(&own.requests));
        for (name, count) in self.placement.resources() {
            let count = resource::Quantity(count.to_string());
            limits.insert(name.to_owned(), count.clone());
            requests.insert(name.to_owned(), count);
        }
        let some = |amounts: BTreeMap<_, _>| Some(amounts).filter(|amounts| !amounts.is_empty());
        let asked = ResourceRequirements {
            limits: some(limits),
            requests: some(requests),
            ..ResourceRequirements::default()
        };
        Some(asked).filter(|asked| *asked != ResourceRequirements::default())
    }
}
