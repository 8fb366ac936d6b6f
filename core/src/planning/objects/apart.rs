//! A pod that serves on while its Deployment makes another in its place.

use flexinfer_crds::{Model, keys};
use k8s_openapi::Metadata;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::metadata::owner;

/// The label by which a ReplicaSet knows its pods.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// By which number a Deployment knows its newest template. A pod that is set apart has that of its own, where it is
/// known.
const REVISION: &str = "deployment.kubernetes.io/revision";

/// What is noted of a pod that never had that label.
const UNKNOWN: &str = "true";

/// The patch that takes a pod of `model`'s out of the ReplicaSet that `deployment` has it in. Services find it as
/// before. It belongs to the Model then, so that it goes with it, and that whoever drains the node knows that somebody
/// sees to the pod.
pub fn set_apart(model: &Model, pod: &Pod, deployment: Option<&Deployment>) -> Value {
    let mut noted = json!({ keys::SET_APART: template(pod).unwrap_or(UNKNOWN) });
    let revision = deployment.filter(|known| is_of_one_template(known)).and_then(revision);
    if let Some((revision, noted)) = revision.zip(noted.as_object_mut()) {
        noted.insert(REVISION.to_owned(), json!(revision));
    }
    json!({ "metadata": {
        "uid": pod.metadata.uid,
        "labels": { TEMPLATE_HASH: null },
        "annotations": noted,
        "ownerReferences": owner(model).map(|owner| vec![owner]),
    } })
}

/// The patch that gives a pod back that was set apart: a ReplicaSet takes up what has its labels and belongs to nobody.
/// It has one too many then, and ends first what does not serve.
pub fn given_back(pod: &Pod) -> Value {
    json!({ "metadata": {
        "uid": pod.metadata.uid,
        "labels": { TEMPLATE_HASH: template(pod) },
        "annotations": { keys::SET_APART: null, REVISION: null },
        "ownerReferences": null,
    } })
}

/// Whether `pod` is no more counted among its Deployment's.
pub(crate) fn is_apart(pod: &Pod) -> bool {
    noted(pod).is_some()
}

/// The template that `pod` was made from, as its ReplicaSet calls it.
pub(crate) fn template(pod: &Pod) -> Option<&str> {
    let label = pod.metadata.labels.iter().find_map(|labels| labels.get(TEMPLATE_HASH));
    label.map(String::as_str).or_else(|| noted(pod).filter(|noted| *noted != UNKNOWN))
}

/// The number of the template that a pod which is set apart was made from, or of a Deployment's newest.
pub(crate) fn revision(object: &impl Metadata<Ty = ObjectMeta>) -> Option<&str> {
    object.metadata().annotations.as_ref()?.get(REVISION).map(String::as_str)
}

/// Whether all pods of `deployment` are of its newest template.
fn is_of_one_template(deployment: &Deployment) -> bool {
    deployment.status.as_ref().is_some_and(|status| {
        status.observed_generation == deployment.metadata.generation
            && status.updated_replicas == status.replicas
    })
}

fn noted(pod: &Pod) -> Option<&str> {
    pod.metadata.annotations.as_ref()?.get(keys::SET_APART).map(String::as_str)
}
