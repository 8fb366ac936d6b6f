//! What the cluster looks like, as far as watches have told: objects in, groups out.
//!
//! An object that this controller has just written is put in with the server's answer, so that no
//! decision rests on an older sight of it.

mod adapters;
mod gone;
mod homes;
mod index;
mod leases;
mod member;
mod names;
mod news;
mod nodes;
mod objects;
mod owner;
mod watches;

use std::collections::BTreeMap;
use std::sync::Arc;

use flexinfer_core::activation::Share;
use flexinfer_core::ids::{GroupId, ModelId};
use flexinfer_core::moment::Moment;
use flexinfer_core::planning::group::Record;
use flexinfer_core::planning::writing::{Contest, Dispute, Writing};
use flexinfer_crds::Model;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Service};
use parking_lot::Mutex;

use crate::clock::Clock;
use crate::queue::Queue;

use index::Index;

pub(crate) use index::Bringer;
pub(crate) use member::Member;
pub(crate) use nodes::Offers;
pub(crate) use objects::Kind;
pub(crate) use watches::{Watching, synced, watch};

/// Claims of one namespace by name.
pub(crate) type Claims = Arc<BTreeMap<String, Arc<PersistentVolumeClaim>>>;

/// Benchmarks' results by their keys.
pub(crate) type Results = Arc<BTreeMap<String, String>>;

/// The world, shared by watches and those who act on it.
pub(crate) struct World {
    index: Mutex<Index>,
    /// Groups that have to be looked at.
    pub(crate) queue: Queue<GroupId>,
    pub(crate) clock: Clock,
}

/// A group as it is seen at one moment.
pub(crate) struct Sight {
    pub(crate) group: GroupId,
    pub(crate) members: Vec<Member>,
    /// Until when the group's GPU is leased to somebody else.
    pub(crate) lease: Option<Moment>,
    pub(crate) offers: Offers,
    /// How full the fullest key-value cache of each node is.
    pub(crate) kv_cache_usage: Arc<BTreeMap<String, f64>>,
    /// The claims of the group's namespace.
    pub(crate) claims: Claims,
    /// What benchmarks have measured.
    pub(crate) results: Results,
}

impl World {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { index: Mutex::new(Index::default()), queue: Queue::new(), clock }
    }

    /// Everything about `group`; `None` where nothing is left of it.
    pub(crate) fn sight(&self, group: &GroupId) -> Option<Sight> {
        let mut index = self.index.lock();
        let (named, sight) = (index.settle_names(), index.sight(group, self.clock.now()));
        drop(index);
        self.wake(named.into_iter().filter(|named| named != group).collect());
        sight
    }

    /// How many Models there are, for those who wait until they were listed.
    pub(crate) fn models(&self) -> usize {
        self.index.lock().models()
    }

    /// Whether there is such a Model.
    pub(crate) fn knows(&self, model: &ModelId) -> bool {
        self.index.lock().knows(model)
    }

    /// Keeps what was decided about a Model for the next decision; of this and what follows, nothing is said of another
    /// that has its name by now.
    pub(crate) fn remember(&self, model: &Model, record: Record) {
        self.index.lock().remember(model, record);
    }

    /// Keeps what became of the writes of a model's objects.
    pub(crate) fn note_writing(&self, model: &Model, writing: Writing) {
        self.index.lock().note_writing(model, writing);
    }

    /// Somebody else wrote fields of a model's objects; it is told.
    pub(crate) fn note_dispute(&self, model: &Model, dispute: Dispute) {
        self.change(|index, _| index.note_dispute(model, dispute));
    }

    /// Keeps what is known of the writes of one of a model's objects.
    pub(crate) fn note_contest(&self, model: &Model, object: (Kind, &str), contest: Contest) {
        self.index.lock().note_contest(model, object, contest, self.clock.now());
    }

    /// This process has deleted one of a model's objects: to make it anew is no repeat.
    pub(crate) fn forget_contest(&self, model: &Model, object: (Kind, &str)) {
        self.index.lock().forget_contest(model, object);
    }

    /// Looks at a model again at that time.
    pub(crate) fn look_again(&self, model: &ModelId, when: Moment) {
        let groups = self.index.lock().groups_of(std::slice::from_ref(model));
        for group in groups {
            self.queue.wake_at(group, self.clock.instant(when));
        }
    }

    /// The pods that bring weights and can be asked how far they are.
    pub(crate) fn bringers(&self) -> Vec<Bringer> {
        self.index.lock().bringers()
    }

    /// What one of them has said.
    pub(crate) fn note_progress(&self, model: &ModelId, pod: &str, share: Share) {
        self.change(|index, now| index.note_progress(model, pod, share, now));
    }

    /// The server's answer to a write of a Model.
    pub(crate) fn wrote_model(&self, model: Model) {
        let now = self.clock.now();
        let woken = self.index.lock().wrote_model(model, now);
        self.wake(woken);
    }

    /// The server's answer to a write of a Deployment.
    pub(crate) fn wrote_deployment(&self, deployment: Deployment) {
        self.index.lock().wrote_deployment(deployment);
    }

    /// The server's answer to a write of a Service.
    pub(crate) fn wrote_service(&self, service: Service) {
        self.index.lock().wrote_service(service);
    }

    /// The server's answer to a write of an engine's files.
    pub(crate) fn wrote_files(&self, files: ConfigMap) {
        self.index.lock().wrote_files(files);
    }

    /// The server's answer to the making of a claim.
    pub(crate) fn wrote_claim(&self, claim: PersistentVolumeClaim) {
        self.index.lock().wrote_claim(claim);
    }

    /// The server's answer to the making of a Job.
    pub(crate) fn wrote_job(&self, job: Job) {
        self.index.lock().wrote_job(job);
    }

    /// A watch told of a Model.
    #[cfg(test)]
    pub(crate) fn saw_model(&self, model: Model) {
        self.change(|index, now| index.see_model(model, now));
    }

    /// A watch told of a Model that is gone.
    #[cfg(test)]
    pub(crate) fn lost_model(&self, model: &ModelId) {
        self.change(|index, _| index.forget_model(model));
    }

    /// A watch told of a Deployment that somebody else wrote.
    #[cfg(test)]
    pub(crate) fn saw_deployment(&self, deployment: Deployment) {
        self.change(|index, _| index.see_deployment(deployment));
    }

    /// A watch told of a Deployment that is gone.
    #[cfg(test)]
    pub(crate) fn lost_deployment(&self, deployment: &Deployment) {
        self.change(|index, _| index.forget_deployment(deployment));
    }

    /// A watch told of a Job.
    #[cfg(test)]
    pub(crate) fn saw_job(&self, job: Job) {
        self.change(|index, _| index.see_job(job));
    }

    /// A watch told of a Job that is gone.
    #[cfg(test)]
    pub(crate) fn lost_job(&self, job: &Job) {
        self.change(|index, _| index.forget_job(job));
    }

    /// A watch told of a node.
    #[cfg(test)]
    pub(crate) fn saw_node(&self, node: &k8s_openapi::api::core::v1::Node) {
        self.change(|index, _| index.see_node(node));
    }

    /// A watch told of a pod.
    #[cfg(test)]
    pub(crate) fn saw_pod(&self, pod: Pod) {
        self.change(|index, _| index.see_pod(pod));
    }

    /// The server's answer to a change of an engine's pod.
    pub(crate) fn wrote_pod(&self, pod: Pod) {
        self.index.lock().changed_pod(pod);
    }

    /// Changes the index and wakes the groups that it names.
    fn change(&self, change: impl FnOnce(&mut Index, Moment) -> Vec<GroupId>) {
        let now = self.clock.now();
        let woken = change(&mut self.index.lock(), now);
        self.wake(woken);
    }

    fn wake(&self, groups: Vec<GroupId>) {
        for group in groups {
            self.queue.wake(group);
        }
    }
}
