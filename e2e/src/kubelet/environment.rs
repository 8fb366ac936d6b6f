//! A container's environment and command line, from its spec and the pod it is in.

use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource, Pod};
use kube::ResourceExt;

/// Why a container cannot be started as it is asked for. A kubelet calls it `CreateContainerConfigError`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unsupported {
    #[error("environment variable {0}: only values and fieldRef are supported")]
    Source(String),
    #[error("environment variable {name}: there is no field {path} here")]
    Field { name: String, path: String },
    #[error("envFrom is not supported")]
    Import,
    #[error("volume {0}: volumes are not supported")]
    Volume(String),
    #[error("{0} probe: only httpGet, tcpSocket and exec are supported")]
    Probe(&'static str),
}

pub(super) type Variables = Vec<(String, String)>;

/// The container's variables, in the order of its spec; a later one may refer to an earlier as `$(NAME)`.
pub(super) fn variables(pod: &Pod, container: &Container) -> Result<Variables, Unsupported> {
    if container.env_from.as_ref().is_some_and(|sources| !sources.is_empty()) {
        return Err(Unsupported::Import);
    }
    let mut variables = Variables::new();
    for variable in container.env.iter().flatten() {
        let value = match &variable.value_from {
            None => expanded(variable.value.as_deref().unwrap_or_default(), &variables),
            Some(source) => from_source(pod, variable, source)?,
        };
        variables.push((variable.name.clone(), value));
    }
    Ok(variables)
}

fn from_source(pod: &Pod, variable: &EnvVar, source: &EnvVarSource) -> Result<String, Unsupported> {
    let name = variable.name.clone();
    let Some(reference) = &source.field_ref else { return Err(Unsupported::Source(name)) };
    let path = reference.field_path.as_str();
    field(pod, path).ok_or_else(|| Unsupported::Field { name, path: path.to_owned() })
}

/// What the downward API says of a pod. A label or annotation that is not set is empty.
fn field(pod: &Pod, path: &str) -> Option<String> {
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
        "spec.nodeName" => spec?.node_name.clone(),
        "spec.serviceAccountName" => spec?.service_account_name.clone(),
        _ => None,
    }
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
    given.iter().chain(arguments).map(|word| expanded(word, variables)).collect()
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
    fn variables_refer_to_earlier_ones_and_to_the_pod() {
        let label = json!({ "fieldRef": { "fieldPath": "metadata.labels['model']" } });
        let env = json!([
            { "name": "MODEL", "valueFrom": label },
            { "name": "URL", "value": "http://$(MODEL)/$(LATER)/$$(MODEL)" },
        ]);
        let variables = variables(&pod(), &container(&json!({ "env": env }))).unwrap();
        assert_eq!(variables[0].1, "llama");
        assert_eq!(variables[1].1, "http://llama/$(LATER)/$(MODEL)");
    }

    #[test]
    fn what_cannot_be_given_is_named() {
        let source = json!({ "secretKeyRef": { "name": "s", "key": "k" } });
        let env = json!([{ "name": "TOKEN", "valueFrom": source }]);
        let refused = variables(&pod(), &container(&json!({ "env": env })));
        assert_eq!(refused, Err(Unsupported::Source("TOKEN".into())));
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
