//! Taints and annotations by which anybody can say that a node goes away.

use flexinfer_crds::keys;
use jiff::Timestamp;
use serde_json::Value;
use std::convert::Infallible;
use std::str::FromStr;

use super::{Notice, Reading, is_ours, later};
use crate::hardware::marks::Node;

/// The notice that is assumed, as EC2 gives.
const NOTICE_SECONDS: i64 = 120;

/// A taint's or annotation's key, with the value that it must have if one is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sign {
    key: String,
    value: Option<String>,
}

impl FromStr for Sign {
    type Err = Infallible;

    /// `key` or `key=value`.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => (key, Some(value.to_owned())),
            None => (text, None),
        };
        Ok(Self { key: key.to_owned(), value })
    }
}

/// The taints that others put on a node that they take away: the AWS node termination handler, Google's
/// kubelet, Karpenter, the cluster autoscaler, and FlexInfer's own mark.
pub const TAINTS: [&str; 7] = [
    "aws-node-termination-handler/spot-itn",
    "aws-node-termination-handler/asg-lifecycle-termination",
    "cloud.google.com/impending-node-termination",
    "karpenter.sh/disrupted",
    "ToBeDeletedByClusterAutoscaler",
    "node.cloudprovider.kubernetes.io/shutdown",
    keys::SPOT_TERMINATING,
];

/// The annotations: FlexInfer's own mark.
pub const ANNOTATIONS: [&str; 1] = ["flexinfer.ai/spot-terminating=true"];

/// Looks for `taints` and `annotations` on `node`. The agent's own mark is not a sign, or it would hold
/// itself up for ever.
pub fn notice(node: &Node, taints: &[Sign], annotations: &[Sign], now: Timestamp) -> Reading {
    let own = is_ours(node);
    let counts = |sign: &&Sign| !(own && sign.key == keys::SPOT_TERMINATING);
    let on_taints = |sign: &&Sign| node.taints.iter().any(|taint| is_taint(taint, sign));
    let on_annotations = |sign: &&Sign| {
        node.annotations
            .get(&sign.key)
            .is_some_and(|value| sign.value.as_ref().is_none_or(|wanted| wanted == value))
    };
    let tainted = taints.iter().filter(counts).find(on_taints).map(|sign| ("taint", sign));
    let annotated =
        || annotations.iter().filter(counts).find(on_annotations).map(|sign| ("annotation", sign));
    let Some((kind, sign)) = tainted.or_else(annotated) else { return Reading::Quiet };
    let mut notice =
        Notice::new(format!("the node has the {kind} {}", sign.key), later(now, NOTICE_SECONDS));
    notice.marked_by_others = sign.key == keys::SPOT_TERMINATING;
    Reading::Noticed(notice)
}

fn is_taint(taint: &Value, sign: &Sign) -> bool {
    let text = |name: &str| taint.get(name).and_then(Value::as_str).unwrap_or_default();
    text("key") == sign.key && sign.value.as_ref().is_none_or(|value| text("value") == value)
}
