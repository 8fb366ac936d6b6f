//! Where results are kept for the scheduler: two ConfigMaps, with the original's keys.
//!
//! A result belongs to the nodes that served, not to the one that asked. Which those are is looked up before
//! and after the measurement; a result that cannot be attributed is not written.

use std::collections::BTreeMap;

use anyhow::{Context as _, anyhow, bail, ensure};
use flexinfer_core::placement::benchmarks::{DeviceClass, Measured, Method, Subject};
use flexinfer_core::planning::objects::names;
use flexinfer_crds::keys;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use super::arguments::Arguments;

/// Tries of a write that somebody else came before.
const ATTEMPTS: usize = 3;

/// The ConfigMaps of a cluster.
pub(super) struct Results<'a> {
    client: Client,
    namespace: String,
    /// The Model's name there.
    model: String,
    configmap: String,
    arguments: &'a Arguments,
    served_by: Serving,
}

/// What served the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Serving {
    /// Its nodes, in the order of their names.
    nodes: Vec<String>,
    /// Their kind.
    class: DeviceClass,
}

/// The cluster that results are kept in; `None` without `--configmap`. To be known before anything is measured.
pub(super) async fn cluster(arguments: &Arguments) -> anyhow::Result<Option<Client>> {
    if arguments.configmap.as_ref().is_none_or(String::is_empty) {
        return Ok(None);
    }
    let client = Client::try_default().await.map_err(|error| {
        anyhow!("no cluster is configured; run it in a cluster, set KUBECONFIG, or leave out --configmap ({error})")
    });
    client.map(Some)
}

impl<'a> Results<'a> {
    /// Where the results of `arguments` go in the cluster of `client`, and who serves the model now.
    pub(super) async fn of(arguments: &'a Arguments, client: Client) -> anyhow::Result<Self> {
        let configmap = arguments.configmap.clone().unwrap_or_default();
        let namespace =
            arguments.namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned());
        let model = own_name(arguments.served_name(), &namespace).to_owned();
        let served_by = serving(&client, &namespace, &model).await?;
        Ok(Self { client, namespace, model, configmap, arguments, served_by })
    }

    /// Writes what was measured.
    pub(super) async fn write(&self, measured: &Measured, method: &Method) -> anyhow::Result<()> {
        let name = &self.model;
        let still = serving(&self.client, &self.namespace, name).await?;
        ensure!(
            still == self.served_by,
            "{name} moved from {} to {} meanwhile; measure it again",
            self.served_by.nodes.join(", "),
            still.nodes.join(", ")
        );
        let subject = Subject {
            namespace: self.namespace.clone(),
            backend: self.arguments.backend().to_owned(),
            model: self.arguments.model.clone(),
            device_class: still.class,
        };
        let of_deployment = format!("{name}-benchmark-results");
        let entries = subject.of_deployment(measured, method);
        self.put(&self.namespace, &of_deployment, entries).await?;
        let shared = self.arguments.results_namespace.as_deref().unwrap_or(&self.namespace);
        self.put(shared, &self.configmap, subject.entries(measured)).await?;
        tracing::info!(
            key = subject.key(),
            class = %subject.device_class,
            nodes = self.served_by.nodes.join(","),
            configmap = self.configmap,
            "written"
        );
        Ok(())
    }

    /// The nodes that served.
    pub(super) fn nodes(&self) -> &[String] {
        &self.served_by.nodes
    }

    /// Puts `entries` into the ConfigMap `name` beside what is there. Only these keys are sent, so that two
    /// benchmarks that end at once do not undo each other.
    async fn put(
        &self,
        namespace: &str,
        name: &str,
        entries: BTreeMap<String, String>,
    ) -> anyhow::Result<()> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let labels =
            json!({ "app": keys::BENCHMARKS_APP, keys::MANAGED_BY: keys::MANAGED_BY_FLEXINFER });
        let patch = json!({ "metadata": { "labels": labels.clone() }, "data": entries.clone() });
        let new = json!({ "metadata": { "name": name, "labels": labels }, "data": entries });
        let new: ConfigMap = serde_json::from_value(new).context("a ConfigMap has this form")?;
        let mut attempt = 1;
        loop {
            let patched = maps.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
            let failed = match patched {
                Err(kube::Error::Api(status)) if status.code == 404 => {
                    maps.create(&PostParams::default(), &new).await.err()
                }
                patched => patched.err(),
            };
            match failed {
                None => return Ok(()),
                Some(kube::Error::Api(status)) if status.code == 409 && attempt < ATTEMPTS => {
                    attempt += 1;
                }
                Some(error) => {
                    return Err(error).with_context(|| {
                        format!("ConfigMap {namespace}/{name} cannot be written")
                    });
                }
            }
        }
    }
}

/// The Model's name in `namespace`, of a name that requests may ask for: `namespace/name` is one.
fn own_name<'n>(asked: &'n str, namespace: &str) -> &'n str {
    let below = asked.strip_prefix(namespace).and_then(|rest| rest.strip_prefix('/'));
    below.unwrap_or(asked)
}

/// What serves `model` now: its pods that are ready, which must be on nodes of one kind.
async fn serving(client: &Client, namespace: &str, model: &str) -> anyhow::Result<Serving> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let label = names::label_value(model);
    let of_model = ListParams::default().labels(&format!("{}={label}", keys::MODEL));
    let pods = pods.list(&of_model).await.context("the model's pods cannot be listed")?;
    let ready = pods.items.iter().filter(|pod| is_ready(pod));
    let mut names: Vec<String> =
        ready.filter_map(|pod| pod.spec.as_ref()?.node_name.clone()).collect();
    names.sort();
    names.dedup();
    let nodes: Api<Node> = Api::all(client.clone());
    let mut classes = Vec::new();
    for name in &names {
        let node = nodes.get(name).await.with_context(|| format!("node {name} cannot be read"))?;
        classes.push(DeviceClass::of_node(node.labels()));
    }
    classes.dedup();
    match classes.as_slice() {
        [class] => Ok(Serving { nodes: names, class: class.clone() }),
        [] => bail!(
            "no pod in {namespace} with the label {}={label} is ready, so nobody knows whose speed it is",
            keys::MODEL
        ),
        several => bail!(
            "{model} is served by {} kinds of nodes ({}); let one kind serve it while it is measured",
            several.len(),
            names.join(", ")
        ),
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let mut ready = conditions.filter(|one| one.type_ == "Ready" && one.status == "True");
    pod.metadata.deletion_timestamp.is_none() && ready.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_may_be_asked_for_with_its_namespace() {
        assert_eq!(own_name("llama", "models"), "llama");
        assert_eq!(own_name("models/llama", "models"), "llama");
        assert_eq!(own_name("models2/llama", "models"), "models2/llama");
    }
}
