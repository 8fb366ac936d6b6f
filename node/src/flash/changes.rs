//! Which files of the destination are ours before a load, and which from then on.

use std::collections::HashSet;

use flexinfer_core::loading::Plan;
use flexinfer_core::sources::RelativePath;

use super::look::{Entry, Seen};

/// What a load makes of the files that are ours.
pub(super) struct Changes<'a> {
    /// What earlier loads have put there.
    pub(super) ours: &'a [RelativePath],
    /// What is ours from now on: what is copied and, of what is whole already, what an earlier load has put there.
    pub(super) files: Vec<&'a RelativePath>,
    /// What is ours and the source has no more.
    pub(super) gone: Vec<&'a RelativePath>,
}

impl<'a> Changes<'a> {
    /// Those of `plan`. Others may have put there what is whole; in a folder that is to hold this copy alone, which
    /// `is_alone` says, that makes no difference.
    pub(super) fn of(plan: &Plan<&'a Entry>, ours: &'a [RelativePath], is_alone: bool) -> Self {
        let known = ours.iter().collect::<HashSet<_>>();
        let path = |entry: &&'a Entry| &entry.found.path;
        let whole = plan.whole.iter().map(path).filter(|path| is_alone || known.contains(path));
        let files = plan.copies.iter().map(path).chain(whole).collect::<Vec<_>>();
        let gone = gone(ours, &files);
        Self { ours, files, gone }
    }

    /// Whether other files are ours than before.
    pub(super) fn are_any(&self) -> bool {
        self.ours.len() != self.files.len() || !self.gone.is_empty()
    }

    /// All that is ours until the load has ended.
    pub(super) fn all(&self) -> impl Iterator<Item = &'a RelativePath> {
        self.files.iter().chain(&self.gone).copied()
    }

    /// What is gone and has a folder's name now, or lies in a folder that has the name of a file now.
    pub(super) fn in_the_way(&self, seen: &Seen) -> Vec<&'a RelativePath> {
        if self.gone.is_empty() {
            return Vec::new();
        }
        let folders = seen.folders.iter().filter_map(|folder| folder.path.as_ref());
        let folders = folders.collect::<HashSet<_>>();
        let files = self.files.iter().map(|path| path.as_str()).collect::<HashSet<_>>();
        let in_a_file = |path: &RelativePath| {
            let path = path.as_str();
            path.match_indices('/').any(|(end, _)| files.contains(path.get(..end).unwrap_or(path)))
        };
        let is_in_the_way = |path: &&RelativePath| folders.contains(path) || in_a_file(path);
        self.gone.iter().copied().filter(is_in_the_way).collect()
    }
}

fn gone<'a>(ours: &'a [RelativePath], files: &[&RelativePath]) -> Vec<&'a RelativePath> {
    if ours.is_empty() {
        return Vec::new();
    }
    let files = files.iter().copied().collect::<HashSet<_>>();
    ours.iter().filter(|path| !files.contains(path)).collect()
}
