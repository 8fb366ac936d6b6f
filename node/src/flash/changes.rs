//! Which files of the destination are ours before a load, and which from then on.

use std::collections::HashSet;

use flexinfer_core::loading::Plan;
use flexinfer_core::sources::RelativePath;

use super::look::{Entry, Seen};

/// What is ours from now on: what is copied and, of what is whole already, what an earlier load has put there. Others
/// may have put the same file there; in a folder that is to hold this copy alone that makes no difference.
pub(super) fn becoming_ours<'a>(
    plan: &Plan<&'a Entry>,
    ours: &[RelativePath],
    is_alone: bool,
) -> Vec<&'a RelativePath> {
    let ours = ours.iter().collect::<HashSet<_>>();
    let path = |entry: &&'a Entry| &entry.found.path;
    let whole = plan.whole.iter().map(path).filter(|path| is_alone || ours.contains(path));
    plan.copies.iter().map(path).chain(whole).collect()
}

/// Which files of ours the source has no more.
pub(super) fn gone<'a>(ours: &'a [RelativePath], files: &[&RelativePath]) -> Vec<&'a RelativePath> {
    if ours.is_empty() {
        return Vec::new();
    }
    let files = files.iter().copied().collect::<HashSet<_>>();
    ours.iter().filter(|path| !files.contains(path)).collect()
}

/// Which of these files have a folder's name now, or lie in a folder that has the name of one of `files`.
pub(super) fn in_the_way<'a>(
    gone: &[&'a RelativePath],
    seen: &Seen,
    files: &[&RelativePath],
) -> Vec<&'a RelativePath> {
    if gone.is_empty() {
        return Vec::new();
    }
    let folders = seen.folders.iter().filter_map(|folder| folder.path.as_ref());
    let folders = folders.collect::<HashSet<_>>();
    let files = files.iter().map(|path| path.as_str()).collect::<HashSet<_>>();
    let in_a_file = |path: &RelativePath| {
        let path = path.as_str();
        path.match_indices('/').any(|(end, _)| files.contains(path.get(..end).unwrap_or(path)))
    };
    gone.iter().copied().filter(|path| folders.contains(path) || in_a_file(path)).collect()
}
