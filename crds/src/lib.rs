//! What may be asked of FlexInfer: the custom resources, their conditions, and every key that
//! FlexInfer reads or writes on an object.
//!
//! One file per kind or part of one. The doc lines are the users' reference: they become the
//! descriptions in the CRD and the pages under `docs/reference`.

mod duration;
mod quantity;

pub mod conditions;
pub mod keys;
#[expect(unreachable_pub, reason = "KubeSchema copies each struct into a function body")]
#[expect(clippy::duplicated_attributes, reason = "every printer column names its own type")]
pub mod lora_adapter;
#[expect(unreachable_pub, reason = "KubeSchema copies each struct into a function body")]
#[expect(clippy::duplicated_attributes, reason = "every printer column names its own type")]
pub mod model;

/// What every object has beside its spec and status.
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub use duration::{Duration, DurationError};
pub use lora_adapter::{LoRAAdapter, LoRAAdapterSpec, LoRAAdapterStatus};
pub use model::{Model, ModelSpec, ModelStatus};
pub use quantity::{Quantity, QuantityError};

/// The API group of every kind.
pub const GROUP: &str = "inference.flexinfer.ai";

/// The group that older installations used; files that name it are still read.
pub const OLDER_GROUP: &str = "ai.flexinfer";

/// The OpenAPI schema of a kind's only version.
fn schema_of<K: kube::CustomResourceExt>() -> serde_json::Value {
    let definition = K::crd();
    let schema = definition.spec.versions.into_iter().next().and_then(|version| version.schema);
    serde_json::to_value(schema.and_then(|schema| schema.open_api_v3_schema)).unwrap_or_default()
}
