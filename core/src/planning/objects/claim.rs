//! The persistent volume claim that is made for a model's weights.

use flexinfer_crds::Quantity;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};

use super::metadata::{metadata, stamped};
use super::weights::Held;
use super::{Blueprint, ClaimUse};

/// `cache.size` of a Model that names none.
const SIZE: &str = "50Gi";

impl Blueprint<'_> {
    /// The claim to make; `None` where the Model needs none or names one that is there.
    pub fn claim(&self) -> Option<PersistentVolumeClaim> {
        let Held::Claim { name, made_by: ClaimUse::Made } = &self.weights.held else { return None };
        let cache = self.model.spec.cache.clone().unwrap_or_default();
        let size = cache.size.unwrap_or_else(|| Quantity::new(SIZE));
        let spec = PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            storage_class_name: cache.storage_class.filter(|class| !class.trim().is_empty()),
            resources: Some(VolumeResourceRequirements {
                requests: Some([("storage".to_owned(), (&size).into())].into()),
                limits: None,
            }),
            ..PersistentVolumeClaimSpec::default()
        };
        let metadata = metadata(self.model, self.effective, name.clone(), "cache");
        Some(stamped(PersistentVolumeClaim { metadata, spec: Some(spec), status: None }))
    }
}
