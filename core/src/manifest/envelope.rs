//! What a document says it is, by `apiVersion` and `kind`: a Model or an adapter, something else that
//! is skipped and named, or a mistake.

use flexinfer_crds::{GROUP, OLDER_GROUP};

use super::complaint::Notes;
use super::nearest::nearest;
use super::node::{Content, Node};

/// The version of the kinds that are read.
pub(super) const VERSION: &str = "v1alpha2";

/// A document that says it is of a kind that is read.
pub(super) struct Document<'d> {
    pub(super) node: &'d Node,
    pub(super) kind: Kind,
}

/// A kind that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Model,
    LoRAAdapter,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Model, Self::LoRAAdapter];

    /// As documents write it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Model => "Model",
            Self::LoRAAdapter => "LoRAAdapter",
        }
    }

    /// What it is, in a sentence.
    pub(super) const fn noun(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::LoRAAdapter => "adapter",
        }
    }

    /// What its spec cannot do without.
    pub(super) const fn least(self) -> &'static str {
        match self {
            Self::Model => "`backend` and `source`",
            Self::LoRAAdapter => "`modelRef`, `adapterName` and `source`",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Kinds of ours that live on a cluster only.
const CLUSTER_KINDS: [&str; 13] = [
    "ModelCatalog",
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

/// The objects in a document: itself, or the items of a `List`.
pub(super) fn open<'d>(node: &'d Node, notes: &mut Notes) -> Vec<Document<'d>> {
    if node.text("kind") == Some("List") && node.text("apiVersion") == Some("v1") {
        let items = node.field("items").map(|field| field.node.items()).unwrap_or_default();
        return items.iter().filter_map(|item| document(item, notes)).collect();
    }
    document(node, notes).into_iter().collect()
}

fn document<'d>(node: &'d Node, notes: &mut Notes) -> Option<Document<'d>> {
    kind_of(node, notes).map(|kind| Document { node, kind })
}

fn kind_of(node: &Node, notes: &mut Notes) -> Option<Kind> {
    if !matches!(node.content, Content::Object(_)) {
        let message = "a document is an object with apiVersion, kind, metadata and spec";
        notes.error(node.place, message);
        return None;
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
        return None;
    };
    let (group, version) = api.split_once('/').unwrap_or(("", api));
    if group == GROUP || group == OLDER_GROUP {
        return ours(node, group, version, kind, notes);
    }
    let place = node.place_of(["apiVersion"]);
    if Kind::named(kind).is_some() {
        let message =
            format!("apiVersion: `{api}` is no version of {kind}; write `{GROUP}/{VERSION}`");
        notes.error(place, message);
    } else {
        notes.warning(place, format!("{} is no Model and is skipped", named(node, kind)));
    }
    None
}

/// The kind of a document of our group, if it is one that is read, in the version that is read.
fn ours(node: &Node, group: &str, version: &str, kind: &str, notes: &mut Notes) -> Option<Kind> {
    let kind_place = node.place_of(["kind"]);
    if CLUSTER_KINDS.contains(&kind) {
        let advice = if REPLACED_KINDS.contains(&kind) {
            "write it as a Model"
        } else {
            "it belongs on a cluster"
        };
        let message = format!(
            "{} is skipped, only Models and their adapters are read; {advice}",
            named(node, kind)
        );
        notes.warning(kind_place, message);
        return None;
    }
    let Some(read) = Kind::named(kind) else {
        let known = CLUSTER_KINDS.iter().copied().chain(Kind::ALL.map(Kind::name));
        let meant = nearest(kind, known).unwrap_or("Model");
        notes.error(kind_place, format!("kind: `{kind}` is unknown; did you mean `{meant}`?"));
        return None;
    };
    let place = node.place_of(["apiVersion"]);
    if version != VERSION {
        let message =
            format!("apiVersion: {kind} has no version `{version}`; write `{GROUP}/{VERSION}`");
        notes.error(place, message);
        return None;
    }
    if group == OLDER_GROUP {
        let message =
            format!("apiVersion: {OLDER_GROUP} is the older group; write `{GROUP}/{VERSION}`");
        notes.warning(place, message);
    }
    Some(read)
}

/// A kind with its object's name, where it has one.
fn named(node: &Node, kind: &str) -> String {
    let name = node.field("metadata").and_then(|metadata| metadata.node.text("name"));
    name.map_or_else(|| kind.to_owned(), |name| format!("{kind} `{name}`"))
}
