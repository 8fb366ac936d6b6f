//! Nodes, as placement sees them: read once per change, and not once per pod.

use std::collections::{BTreeMap, HashMap};

use flexinfer_core::placement::Node;
use k8s_openapi::api::core::v1 as api;

use super::{Shelf, State};

#[derive(Default)]
pub(super) struct Nodes {
    pub(super) known: HashMap<String, Node>,
    pub(super) complete: bool,
}

impl Shelf<api::Node> for Nodes {
    type Kept = Node;

    fn read(object: &api::Node, _tenant_label: Option<&str>) -> (String, Option<Node>) {
        let none = BTreeMap::new();
        let taints = object.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
        let node = Node::read(
            object.metadata.labels.as_ref().unwrap_or(&none),
            object.metadata.annotations.as_ref().unwrap_or(&none),
            taints.map(|taint| taint.key.as_str()),
        );
        (object.metadata.name.clone().unwrap_or_default(), Some(node))
    }

    fn of(state: &mut State) -> &mut Self {
        &mut state.nodes
    }

    fn put(&mut self, key: String, kept: Option<Node>) {
        match kept {
            Some(node) => drop(self.known.insert(key, node)),
            None => drop(self.known.remove(&key)),
        }
    }

    fn replace(&mut self, all: Vec<(String, Option<Node>)>) {
        self.known = all.into_iter().filter_map(|(key, node)| Some((key, node?))).collect();
        self.complete = true;
    }
}
