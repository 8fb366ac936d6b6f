//! What kube-scheduler asks and is told: `k8s.io/kube-scheduler/extender/v1`, in both of its forms. An
//! extender that keeps nodes itself (`nodeCacheCapable`) is sent names, any other whole nodes; each is
//! answered in the form that it asked in. Field names are Go's; older schedulers wrote them small.

use std::borrow::Cow;
use std::collections::BTreeMap;

use flexinfer_core::placement::{Node, Refusal};
use k8s_openapi::api::core::v1 as api;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Why a question cannot be answered at all. The scheduler is told 400.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadQuestion {
    #[error("the body is not a question of kube-scheduler (ExtenderArgs): {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("the body has no Pod")]
    NoPod,
}

/// A question: which of these nodes, for this pod?
#[derive(Debug)]
pub(super) struct Question<'a> {
    pub(super) pod: api::Pod,
    pub(super) nodes: Nodes<'a>,
}

/// The nodes of a question, in its form.
#[derive(Debug)]
pub(super) enum Nodes<'a> {
    Names(Vec<Cow<'a, str>>),
    Whole(Vec<WholeNode<'a>>),
}

/// A node that came with the question.
#[derive(Debug)]
pub(super) struct WholeNode<'a> {
    pub(super) name: String,
    pub(super) node: Node,
    text: &'a RawValue,
}

impl<'a> Question<'a> {
    pub(super) fn read(body: &'a [u8]) -> Result<Self, BadQuestion> {
        let asked: Asked<'a> = serde_json::from_slice(body)?;
        let pod = *asked.pod.ok_or(BadQuestion::NoPod)?;
        let nodes = match (asked.names, asked.nodes) {
            (Some(names), _) => Nodes::Names(names.into_iter().map(|Name(name)| name).collect()),
            (None, Some(list)) => {
                let items = list.items.unwrap_or_default();
                let nodes = items.into_iter().map(whole).collect::<Result<_, _>>();
                Nodes::Whole(nodes?)
            }
            (None, None) => Nodes::Names(Vec::new()),
        };
        Ok(Self { pod, nodes })
    }
}

impl Nodes<'_> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Names(names) => names.len(),
            Self::Whole(nodes) => nodes.len(),
        }
    }

    /// Their names, in the question's order.
    pub(super) fn names(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match self {
            Self::Names(names) => Box::new(names.iter().map(AsRef::as_ref)),
            Self::Whole(nodes) => Box::new(nodes.iter().map(|node| node.name.as_str())),
        }
    }

    /// The answer that refuses each node for which `refusals`, in the question's order, has a reason.
    pub(super) fn filtered(&self, refusals: &[Option<Refusal>]) -> Filtered<'_> {
        let passed = |index: usize| refusals.get(index).is_some_and(Option::is_none);
        let mut answer = Filtered::default();
        match self {
            Self::Names(names) => {
                let passed = names.iter().enumerate().filter(|(index, _)| passed(*index));
                answer.node_names = Some(passed.map(|(_, name)| name.as_ref()).collect());
            }
            Self::Whole(nodes) => {
                let passed = nodes.iter().enumerate().filter(|(index, _)| passed(*index));
                let items = passed.map(|(_, node)| node.text).collect();
                answer.nodes = Some(PassedNodes { metadata: Empty {}, items });
            }
        }
        for (name, refusal) in self.names().zip(refusals) {
            let Some(refusal) = refusal else { continue };
            let failed =
                if refusal.may_pass() { &mut answer.failed } else { &mut answer.unresolvable };
            failed.insert(name, refusal.to_string());
        }
        answer
    }
}

fn whole(text: &RawValue) -> Result<WholeNode<'_>, serde_json::Error> {
    let NodeObject { metadata, spec } = serde_json::from_str(text.get())?;
    let taints = spec.unwrap_or_default().taints.unwrap_or_default();
    let node = Node::read(
        &metadata.labels.unwrap_or_default(),
        &metadata.annotations.unwrap_or_default(),
        taints.iter().map(|taint| taint.key.as_str()),
    );
    Ok(WholeNode { name: metadata.name, node, text })
}

/// The answer of the filter. Lists and maps are empty where there is nothing, never null.
#[derive(Debug, Default, Serialize)]
pub(super) struct Filtered<'a> {
    #[serde(rename = "Nodes")]
    nodes: Option<PassedNodes<'a>>,
    #[serde(rename = "NodeNames")]
    node_names: Option<Vec<&'a str>>,
    #[serde(rename = "FailedNodes")]
    failed: BTreeMap<&'a str, String>,
    #[serde(rename = "FailedAndUnresolvableNodes")]
    unresolvable: BTreeMap<&'a str, String>,
    #[serde(rename = "Error")]
    pub(super) error: String,
}

#[derive(Debug, Serialize)]
struct PassedNodes<'a> {
    metadata: Empty,
    items: Vec<&'a RawValue>,
}

#[derive(Debug, Serialize)]
struct Empty {}

/// One line of the answer of the score.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct HostPriority<'a> {
    #[serde(rename = "Host")]
    pub(super) host: &'a str,
    #[serde(rename = "Score")]
    pub(super) score: i64,
}

#[derive(Deserialize)]
struct Asked<'a> {
    #[serde(rename = "Pod", alias = "pod")]
    pod: Option<Box<api::Pod>>,
    #[serde(borrow, rename = "Nodes", alias = "nodes")]
    nodes: Option<NodeList<'a>>,
    #[serde(borrow, rename = "NodeNames", alias = "nodenames", alias = "nodeNames")]
    names: Option<Vec<Name<'a>>>,
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct NodeList<'a> {
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize)]
struct NodeObject {
    metadata: NodeMetadata,
    spec: Option<NodeSpec>,
}

#[derive(Deserialize)]
struct NodeMetadata {
    name: String,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Default, Deserialize)]
struct NodeSpec {
    taints: Option<Vec<Taint>>,
}

#[derive(Deserialize)]
struct Taint {
    key: String,
}
