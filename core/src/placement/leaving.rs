//! Whether a node is about to be taken away. The agent says so on the node, for the scheduler, the gateways and the
//! controller alike.

use std::collections::BTreeMap;

use flexinfer_crds::keys;

/// Whether a node with these `annotations`, and taints of these `keys`, is about to be taken away.
pub fn is_leaving<'a>(
    annotations: &BTreeMap<String, String>,
    taints: impl IntoIterator<Item = &'a str>,
) -> bool {
    let annotated = annotations.get(keys::SPOT_TERMINATING).is_some_and(|said| said == "true");
    annotated || taints.into_iter().any(|key| key == keys::SPOT_TERMINATING)
}
