//! Volumes for claims: each a folder of this machine, gone when its claim is.

use std::fs;
use std::path::Path;

use futures::{StreamExt, future};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

/// The class of a claim that names none. Further ones are called alike, with something behind.
const CLASS: &str = "folders";

/// Who we are to the cluster. The control plane leaves claims of our classes to us.
const NAME: &str = "e2e.flexinfer.ai/folders";

/// A further class of ours.
pub fn storage_class(suffix: &str, grows: bool) -> StorageClass {
    StorageClass {
        metadata: ObjectMeta { name: Some(format!("{CLASS}-{suffix}")), ..ObjectMeta::default() },
        provisioner: NAME.to_owned(),
        allow_volume_expansion: Some(grows),
        ..StorageClass::default()
    }
}

/// Looks after claims and volumes for as long as it is polled.
pub(super) async fn attend(client: &Client, folder: &Path) {
    let classes: Api<StorageClass> = Api::all(client.clone());
    let class = json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {
            "name": CLASS,
            "annotations": { "storageclass.kubernetes.io/is-default-class": "true" },
        },
        "provisioner": NAME,
    });
    // Without it claims stay unbound, which is what a test will say.
    drop(classes.patch(CLASS, &PatchParams::apply(NAME), &Patch::Apply(class)).await);
    tokio::join!(provide(client, folder), reclaim(client));
}

async fn provide(client: &Client, folder: &Path) {
    let claims: Api<PersistentVolumeClaim> = Api::all(client.clone());
    let claims = watcher(claims, watcher::Config::default()).default_backoff().applied_objects();
    let waiting = claims.filter_map(async |claim| claim.ok().filter(is_waiting));
    waiting.for_each(async |claim| provide_one(client, folder, &claim).await).await;
}

fn is_waiting(claim: &PersistentVolumeClaim) -> bool {
    let spec = claim.spec.as_ref();
    let class = spec.and_then(|spec| spec.storage_class_name.as_deref());
    let volume = spec.and_then(|spec| spec.volume_name.as_deref());
    class.is_some_and(|class| class.starts_with(CLASS))
        && volume.is_none()
        && claim.metadata.deletion_timestamp.is_none()
}

/// What fails is tried again with the claim's next change; the same volume is found rather than made twice.
async fn provide_one(client: &Client, folder: &Path, claim: &PersistentVolumeClaim) {
    let (Some(uid), Some(spec)) = (claim.uid(), &claim.spec) else { return };
    let name = format!("folder-{uid}");
    let path = folder.join(&name);
    if fs::create_dir_all(&path).is_err() {
        return;
    }
    let storage = spec.resources.as_ref().and_then(|resources| resources.requests.clone());
    let volume = json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": { "name": name, "annotations": { "pv.kubernetes.io/provisioned-by": NAME } },
        "spec": {
            "capacity": storage,
            "accessModes": spec.access_modes,
            "volumeMode": "Filesystem",
            "storageClassName": spec.storage_class_name,
            "persistentVolumeReclaimPolicy": "Delete",
            "hostPath": { "path": path },
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": claim.namespace(),
                "name": claim.name_any(),
                "uid": uid,
            },
        },
    });
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    drop(volumes.patch(&name, &PatchParams::apply(NAME), &Patch::Apply(volume)).await);
}

async fn reclaim(client: &Client) {
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    let seen = watcher(volumes.clone(), watcher::Config::default());
    let seen = seen.default_backoff().applied_objects();
    seen.filter_map(|volume| future::ready(volume.ok().filter(is_released)))
        .for_each(async |volume| {
            let path = volume.spec.as_ref().and_then(|spec| spec.host_path.as_ref());
            path.map(|path| fs::remove_dir_all(&path.path));
            drop(volumes.delete(&volume.name_any(), &DeleteParams::default()).await);
        })
        .await;
}

fn is_released(volume: &PersistentVolume) -> bool {
    let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
    phase == Some("Released")
        && volume.annotations().contains_key("pv.kubernetes.io/provisioned-by")
}
