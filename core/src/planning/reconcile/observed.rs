//! Everything that a plan rests on.

use std::collections::BTreeMap;
use std::sync::Arc;

use flexinfer_crds::Model;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};

use crate::backends::Complaint;
use crate::effective::Effective;
use crate::ids::{GroupId, ModelId};
use crate::moment::Moment;
use crate::planning::group::Record;
use crate::planning::model::Demand;
use crate::planning::objects::{Adapters, Settings};
use crate::planning::placing::Cluster;
use crate::planning::progress::Progress;
use crate::planning::writing::{Dispute, Going, Writing};

/// One model, as it was observed.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// Which model.
    pub id: &'a ModelId,
    /// Its Model.
    pub model: &'a Model,
    /// What its spec means, or what its last one did that meant something.
    pub effective: Option<&'a Effective>,
    /// What keeps the spec from meaning anything.
    pub complaints: &'a [Complaint],
    /// Its Deployment.
    pub deployment: Option<&'a Deployment>,
    /// Its engines' pods.
    pub pods: Vec<&'a Pod>,
    /// The Jobs that see to its weights.
    pub jobs: Vec<&'a Job>,
    /// The pods of those Jobs.
    pub job_pods: Vec<&'a Pod>,
    /// The LoRA adapters that its engines shall have.
    pub adapters: Adapters,
    /// What gateways report.
    pub demand: &'a Demand,
    /// Who else claims one of its names, in a sentence.
    pub name_conflict: Option<&'a str>,
    /// What of its objects was not taken.
    pub writing: &'a Writing,
    /// Who else writes them.
    pub dispute: Option<&'a Dispute>,
    /// Those of them that are being deleted.
    pub going: Vec<Going>,
    /// What a pod says that brings its weights.
    pub progress: Option<&'a Progress>,
    /// What was remembered of it.
    pub record: Record,
}

/// A group, as it was observed.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    /// Which group.
    pub group: &'a GroupId,
    /// Its members.
    pub members: Vec<Seen<'a>>,
    /// Until when its GPU is leased to somebody else.
    pub lease: Option<Moment>,
    /// What is known of the cluster.
    pub cluster: Cluster<'a>,
    /// How full the fullest key-value cache of each node is, where that was measured.
    pub kv_cache_usage: &'a BTreeMap<String, f64>,
    /// The claims of the group's namespace, by name.
    pub claims: &'a BTreeMap<String, Arc<PersistentVolumeClaim>>,
    /// The ConfigMap of all benchmarks' results.
    pub results: &'a BTreeMap<String, String>,
    /// The controller's settings.
    pub settings: &'a Settings,
    /// Now.
    pub now: Moment,
}
