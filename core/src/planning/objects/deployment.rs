//! The Deployment of an engine. How many of it there are is for whoever scales to say.

use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::metadata::{metadata, stamped};
use super::{Blueprint, Refusal, names};

/// What Kubernetes itself takes for a Deployment's progress, in seconds.
const PROGRESS: u64 = 600;

/// Whether a change of `deployment` ends a pod before it makes another.
pub(crate) fn ends_first(deployment: &Deployment) -> bool {
    let Some(strategy) = &deployment.spec.strategy else { return false };
    let surge = strategy.rolling_update.as_ref().and_then(|rolling| rolling.max_surge.as_ref());
    strategy.type_.as_deref() == Some("Recreate") || surge == Some(&IntOrString::Int(0))
}

impl Blueprint<'_> {
    /// The Deployment, without `replicas`; `None` for an engine that somebody else runs.
    pub fn deployment(&self) -> Result<Option<Deployment>, Refusal> {
        if !self.backend.starts_engine() {
            return Ok(None);
        }
        let launch = self.launch()?;
        let mut metadata =
            metadata(self.model, self.effective, names::object(&self.effective.id.name), "engine");
        metadata.annotations.get_or_insert_default().extend(self.offered());
        let deadline = launch.startup_limit.as_secs().saturating_add(PROGRESS);
        let spec = DeploymentSpec {
            selector: self.label_selector(),
            template: self.pod(&launch)?,
            strategy: Some(self.rollout()),
            revision_history_limit: Some(2),
            progress_deadline_seconds: i32::try_from(deadline).ok(),
            ..DeploymentSpec::default()
        };
        Ok(Some(stamped(Deployment { metadata, spec, status: None })))
    }

    /// A change never asks for a GPU, or for a claim on another node, while the old engine still has it.
    fn rollout(&self) -> DeploymentStrategy {
        let kind = |kind: &str, rolling_update| DeploymentStrategy {
            type_: Some(kind.to_owned()),
            rolling_update,
        };
        let rolling = |surge: i32, unavailable: i32| {
            let update = RollingUpdateDeployment {
                max_surge: Some(IntOrString::Int(surge)),
                max_unavailable: Some(IntOrString::Int(unavailable)),
            };
            kind("RollingUpdate", Some(update))
        };
        let bound = self.placement.count > 0 || self.on_one_node();
        match (bound, self.effective.max_replicas > 1) {
            (true, false) => kind("Recreate", None),
            (true, true) => rolling(0, 1),
            (false, _) => rolling(1, 0),
        }
    }
}
