//! A claim that is there beside the one that is wanted. A claim never shrinks, and what cannot be changed is
//! told once and keeps nothing else from going on (K8S-17).

use flexinfer_crds::Quantity;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;

/// What is to be done about a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum ClaimChange {
    /// Nothing.
    Keep,
    /// It is to grow; apply this.
    Grow(Box<PersistentVolumeClaim>),
    /// It cannot become what is wanted: why, for people.
    Cannot(String),
}

/// What to do about `there` so that it becomes `wanted`; `can_grow` is what its class says.
pub fn settled_claim(
    mut wanted: PersistentVolumeClaim,
    there: &PersistentVolumeClaim,
    can_grow: Option<bool>,
) -> ClaimChange {
    let (Some(asked), Some(has)) = (size(&wanted), size(there)) else { return ClaimChange::Keep };
    let name = there.metadata.name.clone().unwrap_or_default();
    let class = |claim: &PersistentVolumeClaim| claim.spec.as_ref()?.storage_class_name.clone();
    if let (Some(asked), Some(has)) = (class(&wanted), class(there))
        && asked != has
    {
        let why = format!(
            "the claim `{name}` is of class {has}, which cannot become {asked}; delete it to have it made anew"
        );
        return ClaimChange::Cannot(why);
    }
    // Somebody may have grown it, or the Model asks for less now: both leave it as it is.
    if bytes(&asked) <= bytes(&has) {
        return ClaimChange::Keep;
    }
    if can_grow == Some(false) {
        let why = format!(
            "the claim `{name}` has {has} and cannot grow to {asked}: its class does not allow that; \
             delete it to have it made anew"
        );
        return ClaimChange::Cannot(why);
    }
    let phase = there.status.as_ref().and_then(|status| status.phase.as_deref());
    if phase != Some("Bound") {
        // Until it has a volume, nothing about it can be changed.
        return ClaimChange::Cannot(format!(
            "the claim `{name}` grows to {asked} once it has a volume"
        ));
    }
    if let Some(spec) = &mut wanted.spec {
        let there = there.spec.as_ref();
        spec.storage_class_name = there.and_then(|spec| spec.storage_class_name.clone());
        spec.access_modes = there.and_then(|spec| spec.access_modes.clone());
    }
    ClaimChange::Grow(Box::new(wanted))
}

fn size(claim: &PersistentVolumeClaim) -> Option<Quantity> {
    let resources = claim.spec.as_ref()?.resources.as_ref()?;
    let size = resources.requests.as_ref()?.get("storage")?;
    Some(Quantity::new(size.0.clone()))
}

fn bytes(size: &Quantity) -> u64 {
    size.bytes().unwrap_or_default()
}
