//! Whose GPUs a model runs on: what it says, else what was settled before, else what its nodes agree on.

use std::collections::BTreeSet;

use flexinfer_crds::conditions::ConditionReason;
use flexinfer_crds::keys;
use flexinfer_crds::model::{ModelSpec, Vendor as Asked};

use super::Offer;
use crate::backends::{Backend, Vendor};
use crate::planning::objects::Refusal;

/// The vendor for `spec` among the nodes that it `selected`.
pub(super) fn settle(
    spec: &ModelSpec,
    backend: Backend,
    selected: &[&Offer],
    before: Option<Vendor>,
) -> Result<Vendor, Refusal> {
    let able = backend.vendors();
    if let Some(vendor) = said(spec) {
        if able.contains(&vendor) {
            return Ok(vendor);
        }
        return Err(unsupported(backend, &[vendor].into()));
    }
    let there: BTreeSet<_> = selected.iter().flat_map(|node| node.vendors()).collect();
    let usable: Vec<_> = there.iter().copied().filter(|vendor| able.contains(vendor)).collect();
    if let Some(vendor) = before.filter(|vendor| usable.contains(vendor)) {
        return Ok(vendor);
    }
    match usable.as_slice() {
        [one] => Ok(*one),
        [] if there.is_empty() => {
            let message = "no node that the model may use has a GPU, as far as its labels and its \
                           allocatable resources tell; say gpu.vendor if one is to come";
            Err(Refusal::new(ConditionReason::NoMatchingNodes, message))
        }
        [] => Err(unsupported(backend, &there)),
        several => Err(ambiguous(several)),
    }
}

/// The vendor that the Model names, by `gpu.vendor` or by selecting nodes.
fn said(spec: &ModelSpec) -> Option<Vendor> {
    match spec.gpu.as_ref().and_then(|gpu| gpu.vendor) {
        Some(Asked::Nvidia) => return Some(Vendor::Nvidia),
        Some(Asked::Amd) => return Some(Vendor::Amd),
        Some(Asked::Cpu) => return Some(Vendor::Cpu),
        Some(Asked::Auto) | None => {}
    }
    let selected = [keys::NODE_GPU_VENDOR, keys::GPU_VENDOR];
    let selected = selected.iter().find_map(|key| spec.node_selector.get(*key))?;
    let vendors = [Vendor::Nvidia, Vendor::Amd, Vendor::Intel];
    vendors.into_iter().find(|vendor| vendor.to_string().eq_ignore_ascii_case(selected))
}

fn unsupported(backend: Backend, vendors: &BTreeSet<Vendor>) -> Refusal {
    let names = |vendors: &mut dyn Iterator<Item = Vendor>| {
        vendors.map(|vendor| vendor.to_string()).collect::<Vec<_>>().join(", ")
    };
    let message = format!(
        "{backend} runs on {}, and the model would get {}",
        names(&mut backend.vendors().iter().copied()),
        names(&mut vendors.iter().copied()),
    );
    Refusal::new(ConditionReason::BackendUnsupported, message)
}

fn ambiguous(vendors: &[Vendor]) -> Refusal {
    let names = vendors.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
    let message = format!(
        "there are nodes with GPUs of {names}; say which in gpu.vendor, or in nodeSelector"
    );
    Refusal::new(ConditionReason::AmbiguousGpuVendor, message)
}
