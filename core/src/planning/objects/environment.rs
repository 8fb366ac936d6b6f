//! Variables and arguments as a container takes them. Kubernetes replaces `$(NAME)` in both; what a Model says
//! is meant as it stands, as it is in local mode, so every dollar is doubled. And what opens the doors of hubs and
//! registries.

use flexinfer_crds::keys;
use k8s_openapi::api::core::v1::{
    EnvVar, EnvVarSource, KeyToPath, ObjectFieldSelector, ProjectedVolumeSource, SecretKeySelector,
    SecretProjection, Volume, VolumeMount, VolumeProjection,
};

use super::volumes::mounted;
use super::{Blueprint, Refusal, names};

/// The key of a hub's token in its Secret, and its variable.
const HUB_TOKEN: &str = "HF_TOKEN";

/// The volume with the logins for registries, and where it is.
const LOGINS: &str = "registry-logins";
const LOGINS_MOUNT: &str = "/registry-logins";

/// The key of a pull secret's logins.
const LOGINS_KEY: &str = ".dockerconfigjson";

/// `text` so that Kubernetes makes it into what it was.
pub(super) fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

/// A variable with a plain value.
pub(super) fn variable(name: &str, value: &str) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(literal(value)), value_from: None }
}

/// What a container is told about its pod.
pub(super) fn about_the_pod() -> Vec<EnvVar> {
    let from = |name: &str, path: &str| {
        let field =
            ObjectFieldSelector { field_path: path.to_owned(), api_version: Some("v1".to_owned()) };
        let source = EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() };
        EnvVar { name: name.to_owned(), value: None, value_from: Some(source) }
    };
    vec![
        from("POD_NAME", "metadata.name"),
        from("POD_NAMESPACE", "metadata.namespace"),
        from("POD_IP", "status.podIP"),
        from("NODE_NAME", "spec.nodeName"),
    ]
}

/// Each variable once, the last of a name, where the first of that name stood. A name that not every
/// Kubernetes takes is refused.
pub(super) fn distinct(variables: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
    let mut distinct = Vec::<EnvVar>::new();
    for variable in variables {
        if !names::is_variable_name(&variable.name) {
            let message = format!(
                "`{}` cannot be a variable on a cluster; use letters, digits, `_`, `-` and `.`",
                variable.name
            );
            return Err(Refusal::field("spec.config.env", &message));
        }
        match distinct.iter_mut().find(|known| known.name == variable.name) {
            Some(known) => *known = variable,
            None => distinct.push(variable),
        }
    }
    Ok(distinct)
}

impl Blueprint<'_> {
    /// What reaches the hub: another address, and the token, where there is one.
    pub(super) fn hub(&self) -> Vec<EnvVar> {
        let secret = self.annotation(keys::HUB_TOKEN_SECRET);
        let key = SecretKeySelector {
            name: secret.unwrap_or(&self.settings.hub_token_secret).to_owned(),
            key: HUB_TOKEN.to_owned(),
            // A Secret that the Model names has to be there; the settings' one only may.
            optional: Some(secret.is_none()),
        };
        let source = EnvVarSource { secret_key_ref: Some(key), ..EnvVarSource::default() };
        let token = EnvVar { name: HUB_TOKEN.to_owned(), value: None, value_from: Some(source) };
        let endpoint = self.settings.hub_endpoint.as_deref();
        let endpoint = endpoint.map(|endpoint| variable("HF_ENDPOINT", endpoint));
        endpoint.into_iter().chain([token]).collect()
    }

    /// What reaches registries: those that have no TLS, and the logins that images are pulled with too. A pull
    /// secret that is not there is none, as for images.
    pub(super) fn registries(
        &self,
        volumes: &mut Vec<Volume>,
        mounts: &mut Vec<VolumeMount>,
    ) -> Result<Vec<EnvVar>, Refusal> {
        let mut variables = Vec::new();
        let insecure = self.settings.insecure_registries.join(",");
        if !insecure.is_empty() {
            variables.push(variable("FLEXINFER_INSECURE_REGISTRIES", &insecure));
        }
        let secrets = self.pull_secrets()?.unwrap_or_default();
        if secrets.is_empty() {
            return Ok(variables);
        }
        let files = secrets.iter().map(|secret| format!("{LOGINS_MOUNT}/{}.json", secret.name));
        let files = files.collect::<Vec<_>>().join(",");
        variables.push(variable("FETCH_REGISTRY_LOGINS", &files));
        let sources = secrets.into_iter().map(|secret| VolumeProjection {
            secret: Some(SecretProjection {
                items: Some(vec![KeyToPath {
                    key: LOGINS_KEY.to_owned(),
                    path: format!("{}.json", secret.name),
                    ..KeyToPath::default()
                }]),
                name: secret.name,
                optional: Some(true),
            }),
            ..VolumeProjection::default()
        });
        let projected = ProjectedVolumeSource {
            sources: Some(sources.collect()),
            ..ProjectedVolumeSource::default()
        };
        let volume =
            Volume { name: LOGINS.to_owned(), projected: Some(projected), ..Volume::default() };
        volumes.push(volume);
        mounts.push(mounted(LOGINS, LOGINS_MOUNT, true));
        Ok(variables)
    }
}
