//! Benchmark results: the ConfigMap of all of them, and those of single ModelDeployments.

use std::collections::{BTreeMap, HashMap};

use flexinfer_core::placement::{Pod, Results};
use k8s_openapi::api::core::v1::ConfigMap;

use super::{Shelf, State};

/// What the name of a deployment's ConfigMap ends with.
const OF_DEPLOYMENT: &str = "-benchmark-results";

#[derive(Default)]
pub(super) struct Measured {
    all: All,
    of_deployments: OfDeployments,
}

/// The ConfigMap of all results.
#[derive(Default)]
pub(super) struct All {
    data: Option<BTreeMap<String, String>>,
    complete: bool,
}

/// Results of deployments, by `namespace/name` of their ConfigMaps.
#[derive(Default)]
pub(super) struct OfDeployments {
    data: HashMap<String, BTreeMap<String, String>>,
    complete: bool,
}

impl Measured {
    pub(super) fn complete(&self) -> bool {
        self.all.complete && self.of_deployments.complete
    }

    pub(super) fn for_pod(&self, pod: &Pod) -> Results<'_> {
        let of_deployment = pod.deployment.as_ref().and_then(|deployment| {
            let key = format!("{}/{deployment}{OF_DEPLOYMENT}", pod.namespace);
            self.of_deployments.data.get(&key)
        });
        Results { all: self.all.data.as_ref(), of_deployment }
    }
}

impl Shelf<ConfigMap> for All {
    type Kept = BTreeMap<String, String>;

    fn read(object: &ConfigMap, _tenant_label: Option<&str>) -> (String, Option<Self::Kept>) {
        (String::new(), object.data.clone())
    }

    fn of(state: &mut State) -> &mut Self {
        &mut state.measured.all
    }

    fn put(&mut self, _key: String, kept: Option<Self::Kept>) {
        self.data = kept;
    }

    fn replace(&mut self, all: Vec<(String, Option<Self::Kept>)>) {
        self.data = all.into_iter().find_map(|(_, data)| data);
        self.complete = true;
    }
}

impl Shelf<ConfigMap> for OfDeployments {
    type Kept = BTreeMap<String, String>;

    fn read(object: &ConfigMap, _tenant_label: Option<&str>) -> (String, Option<Self::Kept>) {
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        let name = object.metadata.name.as_deref().unwrap_or_default();
        (format!("{namespace}/{name}"), object.data.clone())
    }

    fn of(state: &mut State) -> &mut Self {
        &mut state.measured.of_deployments
    }

    fn put(&mut self, key: String, kept: Option<Self::Kept>) {
        match kept {
            Some(data) => drop(self.data.insert(key, data)),
            None => drop(self.data.remove(&key)),
        }
    }

    fn replace(&mut self, all: Vec<(String, Option<Self::Kept>)>) {
        self.data = all.into_iter().filter_map(|(key, data)| Some((key, data?))).collect();
        self.complete = true;
    }
}
