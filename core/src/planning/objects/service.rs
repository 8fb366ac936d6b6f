//! The Service of a model: its address inside the cluster, and the labels that it serves.

use flexinfer_crds::{Model, keys};
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::litellm::offered;
use super::metadata::{metadata, stamped};
use super::names;
use super::pod::selector;
use super::probes::PORT;
use crate::backends::Backend;
use crate::effective::Effective;

/// Whether a model serves its labels now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serving {
    /// It shares its GPU with nobody: always.
    Alone,
    /// It holds its group's GPU.
    Active,
    /// Another member does.
    Inactive,
}

/// The Service of `model`. It needs no engine: a model can be found before it can be started.
pub fn service(
    model: &Model,
    effective: &Effective,
    backend: Backend,
    serving: Serving,
) -> Service {
    let name = names::object(&effective.id.name);
    let mut metadata = metadata(model, effective, name, "engine");
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.extend(offered(model, effective));
    let labels = effective.service_labels.join(",");
    if !labels.is_empty() {
        annotations.insert(keys::SERVICE_LABELS.to_owned(), labels.clone());
    }
    match serving {
        Serving::Alone => {}
        Serving::Active => {
            annotations.insert(keys::ACTIVE_SERVICES.to_owned(), labels);
        }
        Serving::Inactive => {
            annotations.insert(keys::ACTIVE_SERVICES.to_owned(), String::new());
        }
    }
    let spec = ServiceSpec {
        type_: Some("ClusterIP".to_owned()),
        selector: Some(selector(&effective.id.name)),
        ports: Some(vec![ServicePort {
            name: Some(PORT.to_owned()),
            port: i32::from(backend.port()),
            target_port: Some(IntOrString::String(PORT.to_owned())),
            protocol: Some("TCP".to_owned()),
            ..ServicePort::default()
        }]),
        ..ServiceSpec::default()
    };
    stamped(Service { metadata, spec: Some(spec), status: None })
}
