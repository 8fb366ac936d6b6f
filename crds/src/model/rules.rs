//! The rules that look at more than one field: each once, as the cluster's expression and as the
//! same question in Rust, which local mode asks. A test holds the two together.

use super::ModelSpec;
use super::cache::CacheStrategy;
use super::gpu::{Gpu, Vendor};
use super::serverless::Serverless;
use crate::keys;

/// A rule about a part `T` of a spec.
pub(super) struct Rule<T> {
    /// The CEL expression that an API server checks; `self` is the part.
    expression: &'static str,
    /// What is wrong when the rule is broken, and what to do.
    message: &'static str,
    /// The field to look at first, as a path below `spec`.
    field: &'static [&'static str],
    /// Whether the part keeps the rule.
    kept_by: fn(&T) -> bool,
}

/// A rule that a spec breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenRule {
    /// The field to look at first, as a path below `spec`.
    pub field: &'static [&'static str],
    /// What is wrong, and what to do.
    pub message: &'static str,
}

impl<T> From<&Rule<T>> for kube::core::Rule {
    fn from(rule: &Rule<T>) -> Self {
        Self::new(rule.expression).message(rule.message)
    }
}

/// Every rule that `spec` breaks, in a stable order; what an API server would say too.
pub fn broken_rules(spec: &ModelSpec) -> Vec<BrokenRule> {
    let mut broken = broken_of(
        &[
            &SOURCE_IS_NAMED,
            &PVC_SOURCE_IS_NOT_HELD_IN_MEMORY,
            &LIMITS_NAME_NO_GPU,
            &REQUESTS_NAME_NO_GPU,
            &VENDOR_AGREES_WITH_NODES,
        ],
        Some(spec),
    );
    broken.extend(broken_of(
        &[&CPU_IS_NOT_SHARED, &CPU_HAS_NO_COUNT, &CPU_HAS_NO_VRAM],
        spec.gpu.as_ref(),
    ));
    broken.extend(broken_of(&[&MAX_REPLICAS_NOT_BELOW_MIN], spec.serverless.as_ref()));
    broken
}

fn broken_of<T>(rules: &[&Rule<T>], part: Option<&T>) -> Vec<BrokenRule> {
    let Some(part) = part else { return Vec::new() };
    rules
        .iter()
        .filter(|rule| !(rule.kept_by)(part))
        .map(|rule| BrokenRule { field: rule.field, message: rule.message })
        .collect()
}

/// Backends whose engines bring their own weights, or none.
const WITHOUT_SOURCE: [&str; 4] = ["external", "simulator", "command", "comfyui"];

/// The names by which a pod would ask for GPUs itself.
const GPU_RESOURCES: [&str; 3] = ["nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915"];

pub(super) const SOURCE_IS_NAMED: Rule<ModelSpec> = Rule {
    expression: "self.backend in ['external', 'simulator', 'command', 'comfyui'] || \
                 (has(self.source) && self.source != '')",
    message: "source is missing: say where the weights are, as HF://org/model, oci://host/name:tag, ollama://model:tag, \
              file:///path or pvc://claim/path (only backends external, simulator, command and comfyui need none)",
    field: &["source"],
    kept_by: |spec| {
        WITHOUT_SOURCE.contains(&spec.backend.as_str())
            || spec.source.as_ref().is_some_and(|source| !source.is_empty())
    },
};

pub(super) const PVC_SOURCE_IS_NOT_HELD_IN_MEMORY: Rule<ModelSpec> = Rule {
    expression: "!has(self.source) || !self.source.startsWith('pvc://') || !has(self.cache) || \
                 !has(self.cache.strategy) || self.cache.strategy != 'Memory'",
    message: "cache.strategy Memory cannot hold a pvc:// source: leave it out, or use SharedPVC, \
              Local or None",
    field: &["cache", "strategy"],
    kept_by: |spec| {
        let from_claim = spec.source.as_ref().is_some_and(|source| source.starts_with("pvc://"));
        let strategy = spec.cache.as_ref().and_then(|cache| cache.strategy);
        !(from_claim && strategy == Some(CacheStrategy::Memory))
    },
};

pub(super) const LIMITS_NAME_NO_GPU: Rule<ModelSpec> = Rule {
    expression: "!has(self.resources) || !has(self.resources.limits) || \
                 ['nvidia.com/gpu', 'amd.com/gpu', 'gpu.intel.com/i915']\
                 .all(name, !(name in self.resources.limits))",
    message: "resources.limits must not name GPUs: ask for them by gpu.count",
    field: &["resources", "limits"],
    kept_by: |spec| {
        let resources = spec.resources.as_ref();
        resources.is_none_or(|resources| {
            GPU_RESOURCES.iter().all(|name| !resources.limits.contains_key(*name))
        })
    },
};

pub(super) const REQUESTS_NAME_NO_GPU: Rule<ModelSpec> = Rule {
    expression: "!has(self.resources) || !has(self.resources.requests) || \
                 ['nvidia.com/gpu', 'amd.com/gpu', 'gpu.intel.com/i915']\
                 .all(name, !(name in self.resources.requests))",
    message: "resources.requests must not name GPUs: ask for them by gpu.count",
    field: &["resources", "requests"],
    kept_by: |spec| {
        let resources = spec.resources.as_ref();
        resources.is_none_or(|resources| {
            GPU_RESOURCES.iter().all(|name| !resources.requests.contains_key(*name))
        })
    },
};

pub(super) const VENDOR_AGREES_WITH_NODES: Rule<ModelSpec> = Rule {
    expression: "!has(self.gpu) || !has(self.gpu.vendor) || self.gpu.vendor == 'auto' || \
                 !has(self.nodeSelector) || !('node.flexstack.io/gpu-vendor' in self.nodeSelector) \
                 || self.nodeSelector['node.flexstack.io/gpu-vendor'] == self.gpu.vendor",
    message: "gpu.vendor and nodeSelector[node.flexstack.io/gpu-vendor] name different vendors: \
              make them agree, or leave one out",
    field: &["gpu", "vendor"],
    kept_by: |spec| {
        let vendor = match spec.gpu.as_ref().and_then(|gpu| gpu.vendor) {
            None | Some(Vendor::Auto) => return true,
            Some(Vendor::Nvidia) => "nvidia",
            Some(Vendor::Amd) => "amd",
            Some(Vendor::Cpu) => "cpu",
        };
        spec.node_selector.get(keys::NODE_GPU_VENDOR).is_none_or(|selected| selected == vendor)
    },
};

pub(super) const CPU_IS_NOT_SHARED: Rule<Gpu> = Rule {
    expression: "!has(self.vendor) || self.vendor != 'cpu' || !has(self.shared) || self.shared == ''",
    message: "gpu.shared has no meaning with gpu.vendor cpu: leave one out",
    field: &["gpu", "shared"],
    kept_by: |gpu| !on_cpu(gpu) || gpu.shared.as_ref().is_none_or(String::is_empty),
};

pub(super) const CPU_HAS_NO_COUNT: Rule<Gpu> = Rule {
    expression: "!has(self.vendor) || self.vendor != 'cpu' || !has(self.count)",
    message: "gpu.count has no meaning with gpu.vendor cpu: leave one out",
    field: &["gpu", "count"],
    kept_by: |gpu| !on_cpu(gpu) || gpu.count.is_none(),
};

pub(super) const CPU_HAS_NO_VRAM: Rule<Gpu> = Rule {
    expression: "!has(self.vendor) || self.vendor != 'cpu' || !has(self.vramEstimateMB)",
    message: "gpu.vramEstimateMB has no meaning with gpu.vendor cpu: leave one out",
    field: &["gpu", "vramEstimateMB"],
    kept_by: |gpu| !on_cpu(gpu) || gpu.vram_estimate_mb.is_none(),
};

pub(super) const MAX_REPLICAS_NOT_BELOW_MIN: Rule<Serverless> = Rule {
    expression: "!has(self.minReplicas) || !has(self.maxReplicas) || \
                 self.minReplicas <= self.maxReplicas",
    message: "serverless.maxReplicas is below serverless.minReplicas: raise it, or lower the other",
    field: &["serverless", "maxReplicas"],
    kept_by: |serverless| match (serverless.min_replicas, serverless.max_replicas) {
        (Some(min), Some(max)) => min <= max,
        _ => true,
    },
};

fn on_cpu(gpu: &Gpu) -> bool {
    gpu.vendor == Some(Vendor::Cpu)
}
