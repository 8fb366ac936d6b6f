//! Files that come from the cluster: ConfigMaps, Secrets, the downward API, service account tokens.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{
    ConfigMap, DownwardAPIVolumeFile, KeyToPath, Pod, Secret, ServiceAccount,
    ServiceAccountTokenProjection, Volume, VolumeProjection,
};
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};

use super::Unready;
use crate::kubelet::environment::{self, Unsupported};

/// What a file holds, by its path in the volume.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Reads for one pod.
pub(crate) struct Reader<'a> {
    pub(super) client: &'a Client,
    pub(super) namespace: String,
    pod: &'a Pod,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(client: &'a Client, pod: &'a Pod) -> Self {
        Self { client, namespace: pod.namespace().unwrap_or_default(), pod }
    }

    /// Writes the files of a volume that has its content from the cluster.
    pub(super) async fn write(&self, volume: &Volume, folder: &Path) -> Result<(), Unready> {
        let (files, mode) = self.files(volume).await?;
        for (path, content) in files {
            let path = folder.join(path);
            let write = || {
                fs::create_dir_all(path.parent().unwrap_or(folder))?;
                fs::write(&path, &content)?;
                let mode = mode.and_then(|mode| u32::try_from(mode).ok()).unwrap_or(0o644);
                fs::set_permissions(&path, fs::Permissions::from_mode(mode))
            };
            write().map_err(Unready::writing(&volume.name))?;
        }
        Ok(())
    }

    async fn files(&self, volume: &Volume) -> Result<(Files, Option<i32>), Unready> {
        if let Some(source) = &volume.config_map {
            let data = self.config_map(&source.name, source.optional).await?;
            return Ok((
                chosen(&source.name, data, source.items.as_deref(), source.optional)?,
                source.default_mode,
            ));
        }
        if let Some(source) = &volume.secret {
            let name = source.secret_name.clone().unwrap_or_default();
            let data = self.secret(&name, source.optional).await?;
            return Ok((
                chosen(&name, data, source.items.as_deref(), source.optional)?,
                source.default_mode,
            ));
        }
        if let Some(source) = &volume.downward_api {
            return Ok((self.downward(source.items.as_deref())?, source.default_mode));
        }
        if let Some(source) = &volume.projected {
            let mut files = Files::new();
            for projection in source.sources.iter().flatten() {
                files.extend(self.projected(projection).await?);
            }
            return Ok((files, source.default_mode));
        }
        Err(Unsupported::Volume(volume.name.clone()).into())
    }

    async fn projected(&self, projection: &VolumeProjection) -> Result<Files, Unready> {
        let mut files = Files::new();
        if let Some(source) = &projection.config_map {
            let data = self.config_map(&source.name, source.optional).await?;
            files.extend(chosen(&source.name, data, source.items.as_deref(), source.optional)?);
        }
        if let Some(source) = &projection.secret {
            let data = self.secret(&source.name, source.optional).await?;
            files.extend(chosen(&source.name, data, source.items.as_deref(), source.optional)?);
        }
        if let Some(source) = &projection.downward_api {
            files.extend(self.downward(source.items.as_deref())?);
        }
        if let Some(source) = &projection.service_account_token {
            files.insert(source.path.clone(), self.token(source).await?.into_bytes());
        }
        Ok(files)
    }

    /// All that a ConfigMap holds; nothing where it is optional and not there.
    pub(crate) async fn config_map(
        &self,
        name: &str,
        optional: Option<bool>,
    ) -> Result<Files, Unready> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace);
        let Some(map) = found(maps.get_opt(name).await, "configmap", name, optional)? else {
            return Ok(Files::new());
        };
        let mut files = map
            .binary_data
            .unwrap_or_default()
            .into_iter()
            .map(|(key, value)| (key, value.0))
            .collect::<Files>();
        files.extend(
            map.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.into_bytes())),
        );
        Ok(files)
    }

    /// The same of a Secret.
    pub(crate) async fn secret(
        &self,
        name: &str,
        optional: Option<bool>,
    ) -> Result<Files, Unready> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let Some(secret) = found(secrets.get_opt(name).await, "secret", name, optional)? else {
            return Ok(Files::new());
        };
        Ok(secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect())
    }

    fn downward(&self, items: Option<&[DownwardAPIVolumeFile]>) -> Result<Files, Unready> {
        let mut files = Files::new();
        for item in items.unwrap_or_default() {
            let content = match (&item.field_ref, &item.resource_field_ref) {
                (Some(field), _) => environment::field(self.pod, &field.field_path),
                (None, Some(resource)) => environment::resource(self.pod, None, resource),
                (None, None) => None,
            };
            let content = content.ok_or_else(|| Unsupported::File(item.path.clone()))?;
            files.insert(item.path.clone(), content.into_bytes());
        }
        Ok(files)
    }

    /// A token that is good for as long as the pod is there.
    async fn token(&self, source: &ServiceAccountTokenProjection) -> Result<String, Unready> {
        let name = self.pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref());
        let name = name.unwrap_or("default");
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &self.namespace);
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                audiences: source.audience.clone().map(|audience| vec![audience]),
                expiration_seconds: source.expiration_seconds,
                bound_object_ref: Some(BoundObjectReference {
                    kind: Some("Pod".to_owned()),
                    api_version: Some("v1".to_owned()),
                    name: Some(self.pod.name_any()),
                    uid: self.pod.uid(),
                }),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let made = accounts.create_token_request(name, &PostParams::default(), &request).await;
        let failed = |source| Unready::Object {
            kind: "token of serviceaccount",
            name: name.to_owned(),
            source: Box::new(source),
        };
        let token = made.map_err(failed)?.status.and_then(|status| status.token);
        Ok(token.unwrap_or_default())
    }
}

/// An object that was asked for, unless it may be missing and is.
fn found<K>(
    got: Result<Option<K>, kube::Error>,
    kind: &'static str,
    name: &str,
    optional: Option<bool>,
) -> Result<Option<K>, Unready> {
    let got = got.map_err(|source| Unready::Object {
        kind,
        name: name.to_owned(),
        source: Box::new(source),
    })?;
    if got.is_none() && optional != Some(true) {
        return Err(Unready::Content(format!("{kind} {name}"), "not found".to_owned()));
    }
    Ok(got)
}

/// The keys that are asked for, under their paths; all under their own names where none is named.
fn chosen(
    name: &str,
    mut data: Files,
    items: Option<&[KeyToPath]>,
    optional: Option<bool>,
) -> Result<Files, Unready> {
    let Some(items) = items.filter(|items| !items.is_empty()) else { return Ok(data) };
    let mut files = Files::new();
    for item in items {
        match data.remove(&item.key) {
            Some(content) => drop(files.insert(item.path.clone(), content)),
            None if optional == Some(true) => {}
            None => {
                return Err(Unready::Content(name.to_owned(), format!("has no key {}", item.key)));
            }
        }
    }
    Ok(files)
}
