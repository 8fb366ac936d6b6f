//! What all our objects carry: name, labels, owner, and a hash of what was wanted, so that an object that is as
//! it shall be is not written again.

use std::collections::BTreeMap;

use flexinfer_crds::{Model, keys};
use k8s_openapi::Metadata;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::Serialize;

use super::names;
use crate::effective::Effective;

/// How a Model is referred to.
const API_VERSION: &str = "inference.flexinfer.ai/v1alpha2";
const KIND: &str = "Model";

/// Texts by key: labels or annotations.
pub(super) type Texts = BTreeMap<String, String>;

/// The metadata of an object of `model`'s, called `name`, that is a `component`.
pub(super) fn metadata(
    model: &Model,
    effective: &Effective,
    name: String,
    component: &str,
) -> ObjectMeta {
    let labels = Texts::from([
        (keys::MANAGED_BY.to_owned(), keys::MANAGED_BY_FLEXINFER.to_owned()),
        (keys::MODEL.to_owned(), names::label_value(&effective.id.name)),
        (keys::COMPONENT.to_owned(), component.to_owned()),
    ]);
    let annotations = Texts::from([(keys::MODEL.to_owned(), effective.id.name.to_string())]);
    ObjectMeta {
        name: Some(name),
        namespace: Some(effective.id.namespace.to_string()),
        labels: Some(labels),
        annotations: Some(annotations),
        owner_references: owner(model).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}

/// The Model as the owner of what is made for it; `None` while it is not stored anywhere.
pub(super) fn owner(model: &Model) -> Option<OwnerReference> {
    Some(OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        name: model.metadata.name.clone()?,
        uid: model.metadata.uid.clone()?,
        controller: Some(true),
        block_owner_deletion: Some(true),
    })
}

/// The object with a hash of itself.
pub(super) fn stamped<T>(mut object: T) -> T
where
    T: Metadata<Ty = ObjectMeta> + Serialize,
{
    let hash = hash_of(&object);
    object.metadata_mut().annotations.get_or_insert_default().insert(keys::SPEC_HASH.into(), hash);
    object
}

/// The hash that an object carries of what was wanted when it was written.
pub fn spec_hash<T: Metadata<Ty = ObjectMeta>>(object: &T) -> Option<&str> {
    let annotations = object.metadata().annotations.as_ref()?;
    annotations.get(keys::SPEC_HASH).map(String::as_str)
}

fn hash_of(object: &impl Serialize) -> String {
    // Through a value, so that the order of keys is that of their names.
    let value = serde_json::to_value(object).unwrap_or_default();
    names::hash(value.to_string().as_bytes(), 16)
}
