//! The end of the namespace that the controller itself is in. It is told to stop before the Models there are deleted,
//! and whoever came after it would be refused: so it lets them go while it still may.

use flexinfer_crds::{Model, keys};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

/// Takes our finalizer off the Models of `namespace` if that is being deleted. What they own goes with the namespace,
/// and copies in nodes' memory are removed by the agents.
pub(super) async fn let_go(client: &Client, namespace: &str) -> Result<(), kube::Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let ends = namespaces.get_opt(namespace).await?;
    if ends.is_none_or(|namespace| namespace.metadata.deletion_timestamp.is_none()) {
        return Ok(());
    }
    let models: Api<Model> = Api::namespaced(client.clone(), namespace);
    for model in models.list_metadata(&ListParams::default()).await? {
        let mut finalizers = model.finalizers().to_vec();
        finalizers.retain(|known| known != keys::MODEL_FINALIZER);
        let patch = json!({ "metadata": { "finalizers": finalizers } });
        let parameters = PatchParams {
            field_manager: Some(keys::FIELD_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let name = model.name_any();
        match models.patch_metadata(&name, &parameters, &Patch::Merge(patch)).await {
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            written => drop(written?),
        }
    }
    tracing::info!(namespace, "the namespace is being deleted, and its Models may go");
    Ok(())
}
