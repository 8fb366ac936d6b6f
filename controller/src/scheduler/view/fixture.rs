//! Views for tests, filled as watches would fill them.

use k8s_openapi::api::core::v1 as api;
use serde_json::Value;

use super::nodes::Nodes;
use super::pods::Pods;
use super::results::{All, OfDeployments};
use super::{Shelf, View};

impl View {
    /// A view whose watches have shown these nodes and these pods, and no results.
    pub(in crate::scheduler) fn showing(nodes: &[Value], pods: &[Value]) -> Self {
        let view = Self::new(None);
        view.list::<api::Node, Nodes>(nodes);
        view.list::<api::Pod, Pods>(pods);
        view.list::<api::ConfigMap, All>(&[]);
        view.list::<api::ConfigMap, OfDeployments>(&[]);
        view
    }

    /// A pod is shown as it is now.
    pub(in crate::scheduler) fn show_pod(&self, pod: &Value) {
        let pod: api::Pod = serde_json::from_value(pod.clone()).unwrap();
        let (key, kept) = Pods::read(&pod, None);
        self.state.write().pods.put(key, kept);
    }

    /// A pod is gone.
    pub(in crate::scheduler) fn hide_pod(&self, uid: &str) {
        self.state.write().pods.put(uid.to_owned(), None);
    }

    fn list<K: serde::de::DeserializeOwned, S: Shelf<K>>(&self, objects: &[Value]) {
        let objects = objects.iter().map(|object| serde_json::from_value(object.clone()).unwrap());
        let all = objects.map(|object: K| S::read(&object, None)).collect();
        S::of(&mut self.state.write()).replace(all);
    }
}
