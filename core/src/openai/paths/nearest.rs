//! The right path for one that is slightly wrong.

use crate::openai::apis::{OPERATIONS, OWN};

/// How alike two paths must be for one to be suggested for the other, from 0 to 1.
const ALIKE: f64 = 0.7;
/// A longer path is not compared with others: nobody means it.
const LONGEST_COMPARED: usize = 100;

/// The path that whoever asked for `path` may have meant.
pub(super) fn nearest(path: &str) -> Option<&'static str> {
    if path.len() > LONGEST_COMPARED {
        return None;
    }
    let known = OPERATIONS.iter().map(|operation| operation.path);
    let known = known.chain(OWN.iter().map(|own| own.path)).filter(|known| !known.contains('{'));
    let alike = known.map(|known| (strsim::normalized_levenshtein(path, known), known));
    let best = alike.filter(|(likeness, _)| *likeness >= ALIKE);
    best.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}
