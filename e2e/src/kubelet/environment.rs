//! A container's environment and command line, from its spec and the pod it is in.

use std::collections::BTreeMap;
use std::path::Path;

use flexinfer_crds::Quantity;
use k8s_openapi::api::core::v1::{
    Container, EnvFromSource, EnvVar, EnvVarSource, Pod, ResourceFieldSelector,
};
use kube::ResourceExt;

use super::volumes::{Reader, Unready};

/// Why a container cannot be started as it is asked for. A kubelet calls it `CreateContainerConfigError`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unsupported {
    #[error("environment variable {0}: its source is not supported")]
    Source(String),
    #[error("environment variable {name}: there is no field {path} here")]
    Field { name: String, path: String },
    #[error("volume {0}: it is not in the pod, or of a kind that is not supported")]
    Volume(String),
    #[error("file {0} of a volume: there is no such field here")]
    File(String),
    #[error("{0} probe: only httpGet, tcpSocket and exec are supported")]
    Probe(&'static str),
}

pub(super) type Variables = Vec<(String, String)>;

/// The container's variables, in the order of its spec; a later one may refer to an earlier as `$(NAME)`.
pub(super) async fn variables(
    pod: &Pod,
    container: &Container,
    reader: &Reader<'_>,
) -> Result<Variables, Unready> {
    let mut variables = Variables::new();
    for source in container.env_from.iter().flatten() {
        variables.extend(imported(source, reader).await?);
    }
    for variable in container.env.iter().flatten() {
        let value = match &variable.value_from {
            None => Some(expanded(variable.value.as_deref().unwrap_or_default(), &variables)),
            Some(source) => from_source(pod, container, variable, source, reader).await?,
        };
        variables.extend(value.map(|value| (variable.name.clone(), value)));
    }
    Ok(variables)
}

async fn imported(source: &EnvFromSource, reader: &Reader<'_>) -> Result<Variables, Unready> {
    let prefix = source.prefix.as_deref().unwrap_or_default();
    let files = match (&source.config_map_ref, &source.secret_ref) {
        (Some(map), _) => reader.config_map(&map.name, map.optional).await?,
        (None, Some(secret)) => reader.secret(&secret.name, secret.optional).await?,
        (None, None) => return Ok(Variables::new()),
    };
    let variable = |(key, value)| (format!("{prefix}{key}"), text(value));
    Ok(files.into_iter().map(variable).collect())
}

/// None where the source is optional and not there.
async fn from_source(
    pod: &Pod,
    container: &Container,
    variable: &EnvVar,
    source: &EnvVarSource,
    reader: &Reader<'_>,
) -> Result<Option<String>, Unready> {
    let name = || variable.name.clone();
    if let Some(reference) = &source.field_ref {
        let path = reference.field_path.as_str();
        let value = field(pod, path);
        return Ok(Some(
            value.ok_or_else(|| Unsupported::Field { name: name(), path: path.to_owned() })?,
        ));
    }
    if let Some(reference) = &source.resource_field_ref {
        let value = resource(pod, Some(container), reference);
        return Ok(Some(value.ok_or_else(|| Unsupported::Source(name()))?));
    }
    let (of, key, optional, mut files) = match (&source.config_map_key_ref, &source.secret_key_ref)
    {
        (Some(map), _) => {
            let files = reader.config_map(&map.name, map.optional).await?;
            (&map.name, &map.key, map.optional, files)
        }
        (None, Some(secret)) => {
            let files = reader.secret(&secret.name, secret.optional).await?;
            (&secret.name, &secret.key, secret.optional, files)
        }
        (None, None) => return Err(Unsupported::Source(name()).into()),
    };
    match files.remove(key) {
        None if optional != Some(true) => {
            Err(Unready::Content(of.clone(), format!("has no key {key}")))
        }
        value => Ok(value.map(text)),
    }
}

fn text(value: Vec<u8>) -> String {
    String::from_utf8(value).unwrap_or_default()
}

/// What the downward API says of a container's resources: without a limit, all that a usual node has.
pub(super) fn resource(
    pod: &Pod,
    container: Option<&Container>,
    reference: &ResourceFieldSelector,
) -> Option<String> {
    let named = |name: &String| {
        let containers = &pod.spec.as_ref()?.containers;
        containers.iter().find(|container| container.name == *name)
    };
    let container = reference.container_name.as_ref().and_then(named).or(container)?;
    let (kind, resource) = reference.resource.split_once('.')?;
    let resources = container.resources.as_ref();
    let amounts = match kind {
        "limits" => resources.and_then(|resources| resources.limits.as_ref()),
        "requests" => resources.and_then(|resources| resources.requests.as_ref()),
        _ => return None,
    };
    let given = amounts.and_then(|amounts| amounts.get(resource));
    let given = given.map_or(if resource == "cpu" { "16" } else { "64Gi" }, |given| &given.0);
    let divisor = reference.divisor.as_ref().map(|divisor| divisor.0.as_str());
    let divisor = divisor.filter(|divisor| *divisor != "0").unwrap_or("1");
    let number = |text| Quantity::new(text).number().ok();
    Some((number(given)? / number(divisor)?).ceil().to_string())
}

/// What the downward API says of a pod. A label or annotation that is not set is empty.
pub(super) fn field(pod: &Pod, path: &str) -> Option<String> {
    let spec = pod.spec.as_ref();
    let keyed = |map: &str| path.strip_prefix(map)?.strip_prefix("['")?.strip_suffix("']");
    if let Some(key) = keyed("metadata.labels") {
        return Some(pod.labels().get(key).cloned().unwrap_or_default());
    }
    if let Some(key) = keyed("metadata.annotations") {
        return Some(pod.annotations().get(key).cloned().unwrap_or_default());
    }
    match path {
        "metadata.name" => Some(pod.name_any()),
        "metadata.namespace" => pod.namespace(),
        "metadata.uid" => pod.uid(),
        "status.podIP" | "status.podIPs" => pod.status.as_ref()?.pod_ip.clone(),
        "status.hostIP" | "status.hostIPs" => pod.status.as_ref()?.host_ip.clone(),
        "metadata.labels" => Some(listed(pod.labels())),
        "metadata.annotations" => Some(listed(pod.annotations())),
        "spec.nodeName" => spec?.node_name.clone(),
        "spec.serviceAccountName" => spec?.service_account_name.clone(),
        _ => None,
    }
}

/// As a downward API volume lists them: one `key="value"` a line.
fn listed(map: &BTreeMap<String, String>) -> String {
    let lines: Vec<_> = map.iter().map(|(key, value)| format!("{key}={value:?}")).collect();
    lines.join("\n")
}

/// The command line: a container's command replaces the image's entry point, its arguments follow either.
pub(super) fn command(
    container: &Container,
    entry_point: &[String],
    variables: &Variables,
) -> Vec<String> {
    let given = container.command.as_deref().unwrap_or_default();
    let arguments = container.args.iter().flatten();
    if given.is_empty() {
        let arguments = arguments.map(|word| expanded(word, variables));
        return entry_point.iter().cloned().chain(arguments).collect();
    }
    let mut words: Vec<String> =
        given.iter().chain(arguments).map(|word| expanded(word, variables)).collect();
    // The image's own program goes by its name, as in the image's `PATH`.
    if let (Some(first), Some(program)) = (words.first_mut(), entry_point.first())
        && Path::new(program).file_name().is_some_and(|name| *name == **first)
    {
        first.clone_from(program);
    }
    words
}

/// `text` with each `$(NAME)` of a known variable replaced. `$$(NAME)` stands for `$(NAME)` as it is, and an
/// unknown name stays.
fn expanded(text: &str, variables: &Variables) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        result.push_str(before);
        if let Some(after) = after.strip_prefix('$') {
            result.push('$');
            rest = after;
            continue;
        }
        let name = after.strip_prefix('(').and_then(|after| after.split_once(')'));
        let known = name.and_then(|(name, after)| {
            let (_, value) = variables.iter().rev().find(|(known, _)| known == name)?;
            Some((value, after))
        });
        rest = if let Some((value, after)) = known {
            result.push_str(value);
            after
        } else {
            result.push('$');
            after
        };
    }
    result + rest
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod() -> Pod {
        let metadata = json!({ "name": "p", "namespace": "n", "labels": { "model": "llama" } });
        serde_json::from_value(json!({
            "metadata": metadata,
            "spec": { "nodeName": "one", "containers": [] },
        }))
        .unwrap()
    }

    fn container(fields: &Value) -> Container {
        let mut container = json!({ "name": "c" });
        container.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(container).unwrap()
    }

    #[test]
    fn the_downward_api_tells_of_the_pod() {
        assert_eq!(field(&pod(), "metadata.labels['model']").as_deref(), Some("llama"));
        assert_eq!(field(&pod(), "metadata.labels['other']").as_deref(), Some(""));
        assert_eq!(field(&pod(), "spec.nodeName").as_deref(), Some("one"));
        assert_eq!(field(&pod(), "spec.colour"), None);
    }

    #[test]
    fn a_resource_is_told_in_the_unit_that_is_asked_for() {
        let limits = json!({ "limits": { "memory": "3Gi", "cpu": "1500m" } });
        let container = container(&json!({ "resources": limits }));
        for (resource, divisor, expected) in [
            ("limits.memory", "1Mi", "3072"),
            ("limits.memory", "0", "3221225472"),
            ("limits.cpu", "1", "2"),
            ("limits.cpu", "1m", "1500"),
        ] {
            let selector = json!({ "resource": resource, "divisor": divisor });
            let selector = serde_json::from_value(selector).unwrap();
            let told = super::resource(&pod(), Some(&container), &selector);
            assert_eq!(told.as_deref(), Some(expected), "{resource} in {divisor}");
        }
    }

    #[test]
    fn variables_refer_to_earlier_ones() {
        let variables = vec![("MODEL".to_owned(), "llama".to_owned())];
        let url = expanded("http://$(MODEL)/$(LATER)/$$(MODEL)", &variables);
        assert_eq!(url, "http://llama/$(LATER)/$(MODEL)");
    }

    #[test]
    fn a_command_replaces_the_entry_point_and_arguments_follow_either() {
        let entry_point = ["engine".to_owned(), "serve".to_owned()];
        let variables = vec![("PORT".to_owned(), "80".to_owned())];
        let plain = container(&json!({ "args": ["--port=$(PORT)"] }));
        assert_eq!(command(&plain, &entry_point, &variables), ["engine", "serve", "--port=80"]);
        let own = container(&json!({ "command": ["other"], "args": ["x"] }));
        assert_eq!(command(&own, &entry_point, &variables), ["other", "x"]);
    }
}
