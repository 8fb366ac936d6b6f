//! A pod, as placement sees it: what it asks of a node's GPUs, and what tells how fast it is where.

use std::collections::BTreeMap;

use flexinfer_crds::{Quantity, keys};
use k8s_openapi::api::core::v1 as api;

use super::said::Said;
use crate::backends::{Backend, Vendor};
use crate::hardware::allocatable;

/// A pod, as placement sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pod {
    /// Its namespace.
    pub namespace: String,
    /// Its name, for the log.
    pub name: String,
    /// What tells it from a namesake.
    pub uid: String,
    /// How many devices its containers ask for together; without any it may run anywhere.
    pub gpus: u64,
    /// Whose GPUs it asks for; `None` if it asks for several makers' or none.
    pub vendor: Option<Vendor>,
    /// The memory that it needs on each device, in MiB.
    pub memory: Said<u64>,
    /// Its engine.
    pub backend: Option<Backend>,
    /// Its engine, as it is written on it: results are found by that.
    pub backend_text: String,
    /// Its model, by the name that results are found by.
    pub model: String,
    /// The format of its quantized weights, such as `AWQ`.
    pub format: Option<String>,
    /// The ModelDeployment that it belongs to.
    pub deployment: Option<String>,
    /// Who it is counted for.
    pub tenant: String,
}

impl Pod {
    /// Reads a pod. Its tenant is the value of its label `tenant_label`, else its namespace.
    pub fn read(pod: &api::Pod, tenant_label: Option<&str>) -> Self {
        let labels = pod.metadata.labels.as_ref();
        let annotations = pod.metadata.annotations.as_ref();
        let text = |key: &str| value(labels, key).or_else(|| value(annotations, key));
        let namespace = pod.metadata.namespace.clone().unwrap_or_default();
        let backend = text(keys::BACKEND).unwrap_or_default();
        let asked = asked(pod);
        Self {
            name: pod.metadata.name.clone().unwrap_or_default(),
            uid: pod.metadata.uid.clone().unwrap_or_default(),
            gpus: asked.iter().map(|(_, count)| count).sum(),
            vendor: one_maker(&asked),
            memory: Said::of(value(annotations, keys::VRAM_ESTIMATE), |text| text.parse().ok()),
            backend: Backend::named(backend),
            backend_text: backend.to_owned(),
            model: text(keys::MODEL).unwrap_or_default().to_owned(),
            format: text(keys::FORMAT).map(str::to_owned),
            deployment: value(labels, keys::DEPLOYMENT).map(str::to_owned),
            tenant: tenant_label
                .and_then(|key| value(labels, key))
                .unwrap_or(&namespace)
                .to_owned(),
            namespace,
        }
    }
}

fn value<'a>(texts: Option<&'a BTreeMap<String, String>>, key: &str) -> Option<&'a str> {
    texts?.get(key).map(String::as_str)
}

/// The devices that a pod's containers ask for, by maker: limits, else requests. Init containers are done
/// when the engine begins.
fn asked(pod: &api::Pod) -> Vec<(Vendor, u64)> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let resources = containers.filter_map(|container| container.resources.as_ref());
    let of_each = resources.flat_map(|resources| {
        let limits = resources.limits.iter().flatten();
        let requests = resources.requests.iter().flatten();
        let limited = |name: &str| resources.limits.as_ref().is_some_and(|l| l.contains_key(name));
        limits.chain(requests.filter(move |(name, _)| !limited(name)))
    });
    let counted = of_each
        .filter_map(|(name, quantity)| Some((allocatable::maker(name)?, count(&quantity.0))));
    counted.filter(|(_, count)| *count > 0).collect()
}

/// A quantity that cannot be read asks for more than any node has.
fn count(quantity: &str) -> u64 {
    Quantity::new(quantity).bytes().unwrap_or(u64::from(u32::MAX))
}

fn one_maker(asked: &[(Vendor, u64)]) -> Option<Vendor> {
    let (first, _) = asked.first()?;
    asked.iter().all(|(vendor, _)| vendor == first).then_some(*first)
}
