//! What a document says it is, by `apiVersion` and `kind`: a Model, something else that is skipped
//! and named, or a mistake.

use flexinfer_crds::{GROUP, OLDER_GROUP};

use super::complaint::Notes;
use super::nearest::nearest;
use super::node::{Content, Node};

/// The version of Model that is read.
pub(super) const VERSION: &str = "v1alpha2";

/// A document that says it is a Model.
pub(super) struct Document<'d> {
    pub(super) node: &'d Node,
}

/// Kinds of ours that live on a cluster only.
const CLUSTER_KINDS: [&str; 14] = [
    "ModelCatalog",
    "LoRAAdapter",
    "Cluster",
    "FederatedModel",
    "GlobalProxy",
    "GPUProfile",
    "GPULease",
    "ModelBackfill",
    "ModelExperiment",
    "WorkflowProfile",
    "GamingSession",
    "ModelDeployment",
    "ModelCache",
    "GPUGroup",
];

/// Kinds of v1alpha1 whose work a Model does now.
const REPLACED_KINDS: [&str; 3] = ["ModelDeployment", "ModelCache", "GPUGroup"];

/// The Models in a document: itself, or the items of a `List`.
pub(super) fn open<'d>(node: &'d Node, notes: &mut Notes) -> Vec<Document<'d>> {
    if node.text("kind") == Some("List") && node.text("apiVersion") == Some("v1") {
        let items = node.field("items").map(|field| field.node.items()).unwrap_or_default();
        return items.iter().filter(|item| is_model(item, notes)).map(document).collect();
    }
    if is_model(node, notes) { vec![document(node)] } else { Vec::new() }
}

fn document(node: &Node) -> Document<'_> {
    Document { node }
}

fn is_model(node: &Node, notes: &mut Notes) -> bool {
    if !matches!(node.content, Content::Object(_)) {
        let message = "a document is an object with apiVersion, kind, metadata and spec";
        notes.error(node.place, message);
        return false;
    }
    let (Some(api), Some(kind)) = (node.text("apiVersion"), node.text("kind")) else {
        let missing = match (node.text("apiVersion"), node.text("kind")) {
            (Some(_), _) => "kind is missing; write `kind: Model`".to_owned(),
            (None, Some(_)) => {
                format!("apiVersion is missing; write `apiVersion: {GROUP}/{VERSION}`")
            }
            (None, None) => format!(
                "apiVersion and kind are missing; write `apiVersion: {GROUP}/{VERSION}` and \
                 `kind: Model`"
            ),
        };
        notes.error(node.place, missing);
        return false;
    };
    let (group, version) = api.split_once('/').unwrap_or(("", api));
    if group == GROUP || group == OLDER_GROUP {
        return ours(node, group, version, kind, notes);
    }
    let place = node.place_of(["apiVersion"]);
    if kind == "Model" {
        let message =
            format!("apiVersion: `{api}` is no version of Model; write `{GROUP}/{VERSION}`");
        notes.error(place, message);
    } else {
        notes.warning(place, format!("{} is no Model and is skipped", named(node, kind)));
    }
    false
}

/// Whether a document of our group is a Model of the version that is read.
fn ours(node: &Node, group: &str, version: &str, kind: &str, notes: &mut Notes) -> bool {
    let kind_place = node.place_of(["kind"]);
    if CLUSTER_KINDS.contains(&kind) {
        let advice = if REPLACED_KINDS.contains(&kind) {
            "write it as a Model"
        } else {
            "it belongs on a cluster"
        };
        let message = format!("{} is skipped, only Models are read; {advice}", named(node, kind));
        notes.warning(kind_place, message);
        return false;
    }
    if kind != "Model" {
        let known = CLUSTER_KINDS.iter().copied().chain(["Model"]);
        let meant = nearest(kind, known).unwrap_or("Model");
        notes.error(kind_place, format!("kind: `{kind}` is unknown; did you mean `{meant}`?"));
        return false;
    }
    let place = node.place_of(["apiVersion"]);
    if version != VERSION {
        let message =
            format!("apiVersion: Model has no version `{version}`; write `{GROUP}/{VERSION}`");
        notes.error(place, message);
        return false;
    }
    if group == OLDER_GROUP {
        let message =
            format!("apiVersion: {OLDER_GROUP} is the older group; write `{GROUP}/{VERSION}`");
        notes.warning(place, message);
    }
    true
}

/// A kind with its object's name, where it has one.
fn named(node: &Node, kind: &str) -> String {
    let name = node.field("metadata").and_then(|metadata| metadata.node.text("name"));
    name.map_or_else(|| kind.to_owned(), |name| format!("{kind} `{name}`"))
}
