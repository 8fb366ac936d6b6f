//! A pod that serves on while its Deployment makes another in its place.

use flexinfer_crds::{Model, keys};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::metadata::owner;

/// The label by which a ReplicaSet knows its pods.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// The patch that takes a pod of `model`'s out of its ReplicaSet. Services find it as before. It belongs to the Model
/// then, so that it goes with it, and that whoever drains the node knows that somebody sees to the pod.
pub fn set_apart(model: &Model, uid: &str) -> Value {
    json!({ "metadata": {
        "uid": uid,
        "labels": { TEMPLATE_HASH: null },
        "annotations": { keys::SET_APART: "true" },
        "ownerReferences": owner(model).map(|owner| vec![owner]),
    } })
}

/// Whether `pod` is no more counted among its Deployment's.
pub(crate) fn is_apart(pod: &Pod) -> bool {
    let annotations = pod.metadata.annotations.as_ref();
    annotations.is_some_and(|all| all.contains_key(keys::SET_APART))
}
