//! Narrows the nodes of one maker's GPUs down to those that one pod template can serve.

use std::collections::{BTreeMap, BTreeSet};

use flexinfer_crds::conditions::ConditionReason;
use flexinfer_crds::{Model, keys};

use super::{Doubt, NodeRule, Offer, Placed, Placement, Settled, offer};
use crate::backends::{Backend, Gpu, Support, Vendor};
use crate::hardware::allocatable::maker;
use crate::planning::objects::{Images, Refusal};

/// A share of a GPU's memory beyond which a model does not fit, and one from which it is worth a warning,
/// both in percent.
const FULL: u64 = 95;
const TIGHT: u64 = 80;

/// The nodes of one maker's GPUs, narrowed down step by step.
pub(super) struct Search<'a> {
    pub(super) model: &'a Model,
    pub(super) backend: Backend,
    pub(super) images: &'a Images,
    pub(super) vendor: Vendor,
    pub(super) count: u32,
    pub(super) estimate: u64,
    pub(super) settled: Settled<'a>,
}

/// What an engine's pod would be like on a node: nodes that differ in it cannot share a pod template.
type Treatment = (Option<String>, bool, Option<String>);

impl Search<'_> {
    /// What is settled by `nodes`, all of which have GPUs of the vendor.
    pub(super) fn place(&self, nodes: &[&Offer]) -> Result<Placed, Refusal> {
        let mut placement = Placement::gpus(self.vendor, self.count);
        let mut doubts = Vec::new();
        if nodes.is_empty() {
            let message = format!("no node that the model may use has {} GPUs", self.vendor);
            doubts.push(Doubt::NoMatchingNodes(message));
            return Ok(Placed { placement, doubts });
        }
        let everywhere = nodes;
        let nodes = self.able(everywhere)?;
        let nodes = self.large_enough(nodes, &mut placement)?;
        let nodes = self.alike(nodes);
        placement.rules.extend(architecture_rules(everywhere, &nodes));
        doubts.extend(self.too_few(&nodes));
        placement.resource = self.resource(&nodes);
        placement.memory_mib = nodes.iter().filter_map(|node| node.memory_mib).min();
        placement.architecture = the_only(nodes.iter().map(|node| node.architecture.clone()));
        if let Some(memory) = placement.memory_mib
            && self.estimate > memory * TIGHT / 100
        {
            doubts.push(Doubt::VramPressure { estimate: self.estimate, memory });
        }
        if let Some(architecture) = placement.architecture.clone()
            && self.backend.support(&architecture) == Support::Experimental
        {
            doubts.push(Doubt::Experimental { backend: self.backend, architecture });
        }
        Ok(Placed { placement, doubts })
    }

    /// Those whose architecture the engine runs on.
    fn able<'n>(&self, nodes: &[&'n Offer]) -> Result<Vec<&'n Offer>, Refusal> {
        let able: Vec<_> = nodes.iter().copied().filter(|node| self.runs_on(node)).collect();
        if !able.is_empty() {
            return Ok(able);
        }
        let names: BTreeSet<_> =
            nodes.iter().filter_map(|node| node.architecture.as_deref()).collect();
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        let message = if nodes.iter().all(|node| self.half_precision_on_maxwell(node)) {
            format!("GPUs of {names} do not compute in half precision, which spec.source is in")
        } else {
            format!(
                "{} does not run on {names}, and the model may use no other nodes",
                self.backend
            )
        };
        Err(Refusal::new(ConditionReason::BackendUnsupported, message))
    }

    fn runs_on(&self, node: &Offer) -> bool {
        let architecture = node.architecture.as_deref().unwrap_or_default();
        self.backend.support(architecture) != Support::None && !self.half_precision_on_maxwell(node)
    }

    fn half_precision_on_maxwell(&self, node: &Offer) -> bool {
        let source = self.model.spec.source.as_deref().unwrap_or_default().to_ascii_lowercase();
        // "fp16" has "f" and "16" apart.
        self.gpu(node).is_maxwell() && (source.contains("f16") || source.contains("fp16"))
    }

    /// Those whose GPUs hold the model, with a rule against the others.
    fn large_enough<'n>(
        &self,
        nodes: Vec<&'n Offer>,
        placement: &mut Placement,
    ) -> Result<Vec<&'n Offer>, Refusal> {
        let holds = |node: &&Offer| {
            node.memory_mib.is_none_or(|memory| self.estimate <= memory * FULL / 100)
        };
        let (large, small): (Vec<_>, Vec<_>) = nodes.into_iter().partition(holds);
        if large.is_empty() {
            let most = small.iter().filter_map(|node| node.memory_mib).max().unwrap_or_default();
            let message = format!(
                "the model takes {} MiB on each GPU (gpu.vramEstimateMB), and the largest that it may \
                 use has {most} MiB, of which {FULL} % can be filled",
                self.estimate
            );
            return Err(Refusal::new(ConditionReason::VramInsufficient, message));
        }
        let labels: BTreeSet<_> = small.iter().filter_map(|node| node.memory_label()).collect();
        if !labels.is_empty() {
            let values = labels.into_iter().cloned().collect();
            placement.rules.push(NodeRule::NotIn { key: keys::GPU_VRAM.to_owned(), values });
        }
        Ok(large)
    }

    /// The largest part of the nodes that one pod template serves; the part with what was settled before, if
    /// there is one.
    fn alike<'n>(&self, nodes: Vec<&'n Offer>) -> Vec<&'n Offer> {
        let mut parts = BTreeMap::<Treatment, Vec<&Offer>>::new();
        for node in nodes {
            parts.entry(self.treatment(node)).or_default().push(node);
        }
        let rank = |part: &Vec<&Offer>| {
            let settled = part.iter().any(|node| {
                self.settled.architecture.is_some()
                    && node.architecture.as_deref() == self.settled.architecture
            });
            let gpus: u64 = part.iter().filter_map(|node| node.count(self.vendor)).sum();
            (settled, gpus)
        };
        parts.into_values().rev().max_by_key(rank).unwrap_or_default()
    }

    fn treatment(&self, node: &Offer) -> Treatment {
        let gpu = self.gpu(node);
        // MLC's compiled libraries are named for the architecture.
        let by_name = (self.backend == Backend::MlcLlm).then(|| gpu.architecture.clone()).flatten();
        let image = match self.model.spec.image {
            Some(_) => None,
            None => self.images.default_of(self.backend, &gpu),
        };
        (image, gpu.is_maxwell(), by_name)
    }

    fn gpu(&self, node: &Offer) -> Gpu {
        let architecture = node.architecture.clone();
        Gpu { vendor: self.vendor, architecture, count: self.count }
    }

    fn too_few(&self, nodes: &[&Offer]) -> Option<Doubt> {
        let count = u64::from(self.count);
        let counts: Option<Vec<_>> = nodes.iter().map(|node| node.count(self.vendor)).collect();
        let most = counts?.into_iter().max()?;
        (most < count).then(|| {
            let vendor = self.vendor;
            let message = format!("no node has {count} {vendor} GPUs; the most on one is {most}");
            Doubt::NoMatchingNodes(message)
        })
    }

    /// What a pod asks for: whole GPUs; where the nodes offer only parts of one kind, such a part; nothing,
    /// where the Model itself asks for a part.
    fn resource(&self, nodes: &[&Offer]) -> Option<String> {
        let asked = self.model.spec.resources.iter();
        let mut asked =
            asked.flat_map(|resources| resources.limits.keys().chain(resources.requests.keys()));
        if asked.any(|name| maker(name).is_some()) {
            return None;
        }
        let mut offered = BTreeMap::<&str, u64>::new();
        for (name, count) in nodes.iter().flat_map(|node| node.resources_of(self.vendor)) {
            *offered.entry(name).or_default() += count;
        }
        offered.retain(|_, count| *count > 0);
        let whole = offered.keys().find(|name| !name.contains("/mig-"));
        let only = if offered.len() == 1 { offered.keys().next() } else { None };
        let found = whole.or(only).map(|name| (*name).to_owned());
        found.or_else(|| offer::resource(self.vendor).map(str::to_owned))
    }
}

/// Rules against the architectures of `all` that none of `chosen` has.
fn architecture_rules(all: &[&Offer], chosen: &[&Offer]) -> Vec<NodeRule> {
    let kept: BTreeSet<_> = chosen.iter().filter_map(|node| node.architecture.as_ref()).collect();
    let rule = |key: &str| {
        let values: BTreeSet<_> = all.iter().filter_map(|node| node.labels.get(key)).collect();
        let values: Vec<_> = values.difference(&kept).map(|value| (*value).clone()).collect();
        (!values.is_empty()).then(|| NodeRule::NotIn { key: key.to_owned(), values })
    };
    [keys::GPU_ARCHITECTURE, keys::GPU_ARCHITECTURE_OLDER].into_iter().filter_map(rule).collect()
}

/// The value that all of `values` have.
fn the_only(values: impl Iterator<Item = Option<String>>) -> Option<String> {
    let distinct: BTreeSet<_> = values.collect();
    if distinct.len() == 1 { distinct.into_iter().next().flatten() } else { None }
}
