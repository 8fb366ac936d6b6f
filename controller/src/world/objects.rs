//! What was made for one model, as far as it was seen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use kube::{Resource, ResourceExt as _};

use super::gone::Gone;
use super::homes::Homes;

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

    /// Whether any of a kind went, since it is not listed.
    pub(super) fn keep(&mut self, kind: Kind, sieve: &mut Sieve<'_>) -> bool {
        match kind {
            Kind::Deployment => keep_one(&mut self.deployment, sieve),
            Kind::Service => keep_one(&mut self.service, sieve),
            Kind::Files => keep_one(&mut self.files, sieve),
            Kind::Job => keep_all(&mut self.jobs, sieve),
            Kind::Pod => {
                let pods = keep_all(&mut self.pods, sieve);
                keep_all(&mut self.job_pods, sieve) || pods
            }
        }
    }
}

fn keep_one<K: Resource>(kept: &mut Option<Arc<K>>, sieve: &mut Sieve<'_>) -> bool {
    kept.take_if(|known| !sieve.keeps(&**known)).is_some()
}

fn keep_all<K: Resource>(kept: &mut BTreeMap<String, Arc<K>>, sieve: &mut Sieve<'_>) -> bool {
    let before = kept.len();
    kept.retain(|_, known| sieve.keeps(&**known));
    before != kept.len()
}

/// What a new list says of the objects that are known.
pub(super) struct Sieve<'a> {
    /// Under namespace and name.
    pub(super) listed: &'a BTreeSet<(String, String)>,
    pub(super) gone: &'a mut Gone,
    pub(super) homes: &'a mut Homes,
}

impl Sieve<'_> {
    fn keeps(&mut self, known: &impl Resource) -> bool {
        let stays = self.gone.unless(known, self.listed);
        if !stays {
            self.homes.leave(known);
        }
        stays
    }
}

/// Where objects of a kind are kept: the only one of a model's, or all by their names.
pub(super) trait Kept<K: Resource> {
    /// The one in whose place one of this name comes.
    fn known(&self, name: &str) -> Option<&Arc<K>>;

    fn put(&mut self, object: K);

    fn remove(&mut self, name: &str);

    /// Whether it is this object, not only one in its place.
    fn holds(&self, object: &K) -> bool {
        let known = self.known(&object.name_any());
        known.is_some_and(|known| {
            known.meta().uid == object.meta().uid && known.meta().name == object.meta().name
        })
    }

    /// Removes this object, nothing that is in its place; whether it was there.
    fn remove_only(&mut self, object: &K) -> bool {
        let there = self.holds(object);
        if there {
            self.remove(&object.name_any());
        }
        there
    }
}

impl<K: Resource> Kept<K> for Option<Arc<K>> {
    fn known(&self, _: &str) -> Option<&Arc<K>> {
        self.as_ref()
    }

    fn put(&mut self, object: K) {
        *self = Some(Arc::new(object));
    }

    fn remove(&mut self, _: &str) {
        *self = None;
    }
}

impl<K: Resource> Kept<K> for BTreeMap<String, Arc<K>> {
    fn known(&self, name: &str) -> Option<&Arc<K>> {
        self.get(name)
    }

    fn put(&mut self, object: K) {
        self.insert(object.name_any(), Arc::new(object));
    }

    fn remove(&mut self, name: &str) {
        BTreeMap::remove(self, name);
    }
}
