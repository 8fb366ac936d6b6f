//! FlexInfer's own mark on a node that goes away: an annotation, the time, and a taint.

use flexinfer_crds::keys;

use super::Reading;
use crate::hardware::marks::{Marks, Node};

/// The mark on `node` is the agent's, which alone writes the time.
pub fn is_ours(node: &Node) -> bool {
    node.annotations.contains_key(keys::SPOT_TERMINATING_AT)
}

/// What `node` shall carry after `reading`. A notice that passed takes the agent's mark away; an unclear
/// answer changes nothing, and neither does a mark that others set.
pub fn mark(reading: &Reading, node: &Node) -> Marks {
    let mut marks = Marks::default();
    let mut set = |terminating: Option<String>, at: Option<String>| {
        marks.tainted = Some(terminating.is_some());
        marks.annotations.insert(keys::SPOT_TERMINATING.to_owned(), terminating);
        marks.annotations.insert(keys::SPOT_TERMINATING_AT.to_owned(), at);
    };
    match reading {
        Reading::Noticed(notice) if !notice.marked_by_others => {
            // The first time that was told holds: sources without one count from every look anew.
            let first = node.annotations.get(keys::SPOT_TERMINATING_AT).cloned();
            let told = notice.at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            set(Some("true".to_owned()), first.or(Some(told)));
        }
        Reading::Quiet if is_ours(node) => set(None, None),
        _ => {}
    }
    marks
}
