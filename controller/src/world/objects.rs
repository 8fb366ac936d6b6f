//! What was made for one model, as far as it was seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};

use super::news::Named;

/// What was made for a model. May be known before the model is.
#[derive(Default)]
pub(super) struct Objects {
    pub(super) deployment: Option<Arc<Deployment>>,
    /// The versions as this process left them.
    pub(super) left: BTreeMap<Kind, String>,
    pub(super) service: Option<Arc<Service>>,
    pub(super) files: Option<Arc<ConfigMap>>,
    pub(super) jobs: BTreeMap<String, Arc<Job>>,
    pub(super) job_pods: BTreeMap<String, Arc<Pod>>,
    pub(super) pods: BTreeMap<String, Arc<Pod>>,
}

/// The kinds of object that are made for models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Deployment,
    Service,
    Files,
    Job,
    Pod,
}

impl Objects {
    pub(super) fn empty(&self) -> bool {
        self.deployment.is_none()
            && self.service.is_none()
            && self.files.is_none()
            && self.jobs.is_empty()
            && self.job_pods.is_empty()
            && self.pods.is_empty()
    }

    /// Whether anything went.
    pub(super) fn keep(&mut self, kind: Kind, listed: &BTreeSet<(String, String)>) -> bool {
        let there = |object: &dyn Named| listed.contains(&object.place());
        match kind {
            Kind::Deployment => self.deployment.take_if(|known| !there(&**known)).is_some(),
            Kind::Service => self.service.take_if(|known| !there(&**known)).is_some(),
            Kind::Files => self.files.take_if(|known| !there(&**known)).is_some(),
            Kind::Job => {
                let before = self.jobs.len();
                self.jobs.retain(|_, job| there(&**job));
                before != self.jobs.len()
            }
            Kind::Pod => {
                let before = self.pods.len() + self.job_pods.len();
                self.pods.retain(|_, pod| there(&**pod));
                self.job_pods.retain(|_, pod| there(&**pod));
                before != self.pods.len() + self.job_pods.len()
            }
        }
    }
}
