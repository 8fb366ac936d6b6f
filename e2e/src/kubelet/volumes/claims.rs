//! Where the volume behind a claim lies.

use std::path::PathBuf;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::Api;

use super::Unready;
use super::content::Reader;

/// The folder of the volume that a claim is bound to.
pub(super) async fn folder(reader: &Reader<'_>, claim: &str) -> Result<PathBuf, Unready> {
    let claims: Api<PersistentVolumeClaim> =
        Api::namespaced(reader.client.clone(), &reader.namespace);
    let object = |kind, name: &str| {
        let name = name.to_owned();
        move |source| Unready::Object { kind, name, source: Box::new(source) }
    };
    let found = claims.get(claim).await.map_err(object("persistentvolumeclaim", claim))?;
    let unbound = || Unready::Content(format!("claim {claim}"), "is not bound yet".to_owned());
    let bound = found.status.and_then(|status| status.phase).as_deref() == Some("Bound");
    let volume = found.spec.and_then(|spec| spec.volume_name).filter(|_| bound);
    let volume = volume.ok_or_else(unbound)?;
    let volumes: Api<PersistentVolume> = Api::all(reader.client.clone());
    let found = volumes.get(&volume).await.map_err(object("persistentvolume", &volume))?;
    let path = found.spec.and_then(|spec| spec.host_path).map(|path| PathBuf::from(path.path));
    path.ok_or_else(|| Unready::Content(volume, "only hostPath volumes are supported".to_owned()))
}
