//! Harvester: a host that goes into maintenance says so on its own node. There is no metadata server to ask.

use jiff::Timestamp;

use super::{Notice, Reading};
use crate::hardware::marks::Node;

/// The host's maintenance has been asked for.
const REQUESTED: &str = "harvesterhci.io/drain-requested";
/// `running` while the host is emptied, `completed` when it is empty.
const STATUS: &str = "harvesterhci.io/maintain-status";

/// Reads the node's annotations.
pub fn notice(node: &Node, now: Timestamp) -> Reading {
    let requested = node.annotations.get(REQUESTED).is_some_and(|value| value == "true");
    let status = node.annotations.get(STATUS).map(String::as_str);
    if requested || matches!(status, Some("running" | "completed")) {
        return Reading::Noticed(Notice::new("Harvester puts this host into maintenance", now));
    }
    Reading::Quiet
}
