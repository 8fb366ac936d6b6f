//! How fast a pod's model is on each kind of node, by what was measured.

use std::collections::{BTreeMap, HashMap};

use super::benchmarks::{self, DeviceClass, Subject};
use super::{Node, Pod};

/// What was measured, as ConfigMaps hold it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Results<'a> {
    /// The ConfigMap of all results.
    pub all: Option<&'a BTreeMap<String, String>>,
    /// The ConfigMap of the pod's ModelDeployment.
    pub of_deployment: Option<&'a BTreeMap<String, String>>,
}

/// The speeds of one pod, each kind of node looked up once: its key is a digest.
pub(super) struct Speeds<'a> {
    pod: &'a Pod,
    results: Results<'a>,
    known: HashMap<&'a DeviceClass, f64>,
}

impl<'a> Speeds<'a> {
    pub(super) fn new(pod: &'a Pod, results: Results<'a>) -> Self {
        Self { pod, results, known: HashMap::new() }
    }

    /// Tokens per second on nodes like `node`: measured on its kind, else measured for the deployment
    /// anywhere, else 0.
    pub(super) fn on(&mut self, node: &'a Node) -> f64 {
        let Self { pod, results, known } = self;
        *known.entry(&node.class).or_insert_with(|| {
            let subject = || Subject {
                namespace: pod.namespace.clone(),
                backend: pod.backend_text.clone(),
                model: pod.model.clone(),
                device_class: node.class.clone(),
            };
            let of_class = results.all.and_then(|all| benchmarks::found(all, &subject()));
            let of_class = of_class.map(|found| found.tokens_per_second);
            let of_deployment = || results.of_deployment.and_then(benchmarks::rate_of_deployment);
            of_class.or_else(of_deployment).unwrap_or_default()
        })
    }
}
