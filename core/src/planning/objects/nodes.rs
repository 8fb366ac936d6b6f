//! On which nodes a model's pods may run: where its GPUs are, and where several engines can have their weights.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{
    Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
    PersistentVolumeClaim, PodAffinity, PodAffinityTerm, TopologySpreadConstraint,
};

use super::{Blueprint, Held, selected};
use crate::planning::moving::Until;
use crate::planning::placing::{Doubt, NodeRule, Offer, Placement};

const HOST_NAME: &str = "kubernetes.io/hostname";

impl Blueprint<'_> {
    /// The same on `claim`, the one that holds the weights. What is not seen yet can be used by one node at a time.
    #[must_use]
    pub fn on_claim(mut self, claim: Option<&PersistentVolumeClaim>) -> Self {
        let writes = self.weights.writable;
        self.on_many_nodes = claim.is_some_and(|claim| on_many_nodes(claim, writes));
        self
    }

    /// Whether its engines may run on `node`, as far as its labels and its GPUs tell.
    pub(in crate::planning) fn may_run_on(&self, node: &Offer) -> bool {
        let Placement { vendor, count, rules, .. } = self.placement;
        node.matches(&selected(&self.model.spec.node_selector))
            && rules.iter().all(|rule| rule.allows(&node.labels))
            && (*count == 0 || node.vendors().contains(vendor))
    }

    /// Whether the Model names a label that `node` has with another value: it is another that is wanted, and not one
    /// whose labels are away.
    pub(in crate::planning) fn names_another_than(&self, node: &Offer) -> bool {
        let differs =
            |(key, value): (&String, &String)| node.labels.get(key).is_some_and(|has| has != value);
        self.model.spec.node_selector.iter().any(differs)
    }

    /// Whether engines hang on a claim that one node at a time can use (K8S-16).
    pub(crate) fn on_one_node(&self) -> bool {
        matches!(self.weights.held, Held::Claim { .. }) && !self.on_many_nodes
    }

    /// What has to be before an engine ends in whose place another shall serve. What only one pod can use, and what has
    /// to be where the old one is, finds no node before.
    pub(crate) fn until(&self, claim: Option<&PersistentVolumeClaim>) -> Until {
        if !self.on_one_node() {
            Until::Served
        } else if claim.is_some_and(is_of_one_pod) || self.bound_to_one_node() {
            Until::Gone
        } else {
            Until::Placed
        }
    }

    /// What its author should know about where several engines may run.
    pub(crate) fn doubt(&self) -> Option<Doubt> {
        let Held::Claim { name, .. } = &self.weights.held else { return None };
        self.bound_to_one_node().then(|| Doubt::OneNode(name.clone()))
    }

    /// That all engines go where a claim is that only one node can use. Of engines alone: a Job's pod that had to
    /// be where an engine is would never come to be, since no engine is started before it.
    pub(super) fn together(&self) -> Option<PodAffinity> {
        self.bound_to_one_node().then(|| PodAffinity {
            required_during_scheduling_ignored_during_execution: Some(vec![PodAffinityTerm {
                label_selector: Some(self.label_selector()),
                topology_key: HOST_NAME.to_owned(),
                ..PodAffinityTerm::default()
            }]),
            ..PodAffinity::default()
        })
    }

    /// Whether several engines would hang on a claim that one node at a time can use (K8S-16).
    fn bound_to_one_node(&self) -> bool {
        self.effective.max_replicas > 1 && self.on_one_node()
    }

    /// Several engines on several nodes, where that can be had.
    pub(super) fn spreading(&self) -> Option<Vec<TopologySpreadConstraint>> {
        (self.effective.max_replicas > 1 && !self.bound_to_one_node()).then(|| {
            vec![TopologySpreadConstraint {
                max_skew: 1,
                topology_key: HOST_NAME.to_owned(),
                when_unsatisfiable: "ScheduleAnyway".to_owned(),
                label_selector: Some(self.label_selector()),
                ..TopologySpreadConstraint::default()
            }]
        })
    }
}

/// Whether several nodes can use a claim at once, by what its volume can do, or by what is asked of one that has
/// none yet; `writes` where pods write to it.
fn on_many_nodes(claim: &PersistentVolumeClaim, writes: bool) -> bool {
    let can = |mode: &str| mode == "ReadWriteMany" || (mode == "ReadOnlyMany" && !writes);
    modes(claim).any(can)
}

/// What has to be before an engine of `deployment` ends, where another of it shall serve and not one that is drawn anew:
/// by what it mounts, and whether all of them have to be together.
pub(in crate::planning) fn until_by_mounts(
    deployment: &Deployment,
    claims: &BTreeMap<String, Arc<PersistentVolumeClaim>>,
) -> Until {
    let Some(pod) = &deployment.spec.template.spec else { return Until::Served };
    let mounts =
        pod.volumes.iter().flatten().filter_map(|one| one.persistent_volume_claim.as_ref());
    let on_one_node = mounts.filter_map(|mount| {
        let (claim, writes) = (claims.get(&mount.claim_name), mount.read_only != Some(true));
        (!claim.is_some_and(|claim| on_many_nodes(claim, writes))).then_some(claim)
    });
    let on_one_node: Vec<_> = on_one_node.collect();
    let together = pod.affinity.as_ref().is_some_and(|affinity| affinity.pod_affinity.is_some());
    let one_pod = on_one_node.iter().flatten().any(|claim| is_of_one_pod(claim));
    match on_one_node.as_slice() {
        [] => Until::Served,
        _ if one_pod || together => Until::Gone,
        _ => Until::Placed,
    }
}

fn is_of_one_pod(claim: &PersistentVolumeClaim) -> bool {
    modes(claim).any(|mode| mode == "ReadWriteOncePod")
}

/// How `claim` can be used; as long as it has no volume, how it shall be.
fn modes(claim: &PersistentVolumeClaim) -> impl Iterator<Item = &str> {
    let of_volume = claim.status.as_ref().and_then(|status| status.access_modes.as_ref());
    let asked = claim.spec.as_ref().and_then(|spec| spec.access_modes.as_ref());
    let modes = of_volume.filter(|modes| !modes.is_empty()).or(asked);
    modes.into_iter().flatten().map(String::as_str)
}

/// The nodes that would do.
pub(super) fn affinity_to_nodes(rules: &[NodeRule]) -> Option<Affinity> {
    let rules: Vec<_> = rules.iter().map(requirement).collect();
    let node_affinity = (!rules.is_empty()).then(|| NodeAffinity {
        required_during_scheduling_ignored_during_execution: Some(NodeSelector {
            node_selector_terms: vec![NodeSelectorTerm {
                match_expressions: Some(rules),
                match_fields: None,
            }],
        }),
        ..NodeAffinity::default()
    })?;
    Some(Affinity { node_affinity: Some(node_affinity), ..Affinity::default() })
}

/// The same, and which other pods have to be near.
pub(super) fn affinity(nodes: Option<Affinity>, pods: Option<PodAffinity>) -> Option<Affinity> {
    if pods.is_none() {
        return nodes;
    }
    Some(Affinity { pod_affinity: pods, ..nodes.unwrap_or_default() })
}

fn requirement(rule: &NodeRule) -> NodeSelectorRequirement {
    let (operator, key, values) = match rule {
        NodeRule::In { key, values } => ("In", key, values),
        NodeRule::NotIn { key, values } => ("NotIn", key, values),
    };
    NodeSelectorRequirement {
        key: key.clone(),
        operator: operator.to_owned(),
        values: Some(values.clone()),
    }
}
