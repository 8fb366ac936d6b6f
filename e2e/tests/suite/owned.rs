//! What belongs to a Model: what it owns, what that owns, and the volumes behind its claims. All of it goes with it.

use std::collections::BTreeSet;

use flexinfer_e2e::Kubectl;
use serde_json::Value;

use crate::shared::eventually;

/// Every kind that the controller makes, and those that Kubernetes makes for them. Volumes lie in no namespace.
const KINDS: &str = "deployments,replicasets,jobs,pods,services,endpointslices,configmaps,\
                     persistentvolumeclaims,persistentvolumes";

/// Objects of one Model, each as `Kind/name`.
pub(crate) struct Owned {
    kubectl: Kubectl,
    namespace: String,
    /// By which another object under the same name is told from one of these.
    ids: BTreeSet<String>,
    names: Vec<String>,
}

impl Owned {
    /// What belongs to a Model now.
    pub(crate) async fn by(kubectl: Kubectl, namespace: &str, model: &str) -> Self {
        let owner = get(&kubectl, namespace, &["model", model]).await;
        let mut ids = BTreeSet::from([id(&owner)]);
        let objects = list(&kubectl, namespace).await;
        // Owners may be listed after what they own.
        while let Some(next) = objects.iter().find(|object| new(object, &ids)) {
            ids.insert(id(next));
        }
        let names = objects.iter().filter(|object| ids.contains(&id(object))).map(name).collect();
        Self { kubectl, namespace: namespace.to_owned(), ids, names }
    }

    /// Whether there is one of each of these kinds.
    pub(crate) fn includes(&self, kinds: &[&str]) -> bool {
        let there = |kind: &&str| {
            self.names.iter().any(|name| name.split_once('/').is_some_and(|(of, _)| of == *kind))
        };
        kinds.iter().all(there)
    }

    /// The same, where less would make the test show nothing.
    pub(crate) fn has(&self, kinds: &[&str]) {
        assert!(self.includes(kinds), "not all of {kinds:?}: {:?}", self.names);
    }

    /// Waits until all of it is gone, and what it came to own meanwhile.
    pub(crate) async fn are_gone(&self) {
        eventually(&format!("all of these are gone: {:?}", self.names), async || {
            let left = list(&self.kubectl, &self.namespace).await;
            let of_it = |object: &Value| self.ids.contains(&id(object)) || new(object, &self.ids);
            (!left.iter().any(of_it)).then_some(())
        })
        .await;
    }
}

async fn list(kubectl: &Kubectl, namespace: &str) -> Vec<Value> {
    let mut list = get(kubectl, namespace, &[KINDS]).await;
    serde_json::from_value(list["items"].take()).unwrap()
}

async fn get(kubectl: &Kubectl, namespace: &str, what: &[&str]) -> Value {
    let get = ["--namespace", namespace, "get", "--output=json"];
    let printed = kubectl.run(&[&get[..], what].concat()).await.unwrap();
    assert!(printed.success, "{}", printed.stderr);
    serde_json::from_str(&printed.stdout).unwrap()
}

/// Whether an object is not among `ids`, but its owner is, or the claim that it is the volume of.
fn new(object: &Value, ids: &BTreeSet<String>) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let owners = owners.map(|owner| &owner["uid"]).chain([&object["spec"]["claimRef"]["uid"]]);
    let of_it = owners.filter_map(Value::as_str).any(|owner| ids.contains(owner));
    of_it && !ids.contains(&id(object))
}

fn id(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

fn name(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]))
}
