//! The destination of a download, and where things lie in it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flexinfer_core::sources::RelativePath;
use flexinfer_core::sources::download::Conversation;

use crate::record::Record;

/// The name of our own folder in the destination.
const OURS: &str = ".flexinfer";

/// A partial file that has not grown for a week will not be gone on with.
const FORGOTTEN: Duration = Duration::from_hours(7 * 24);

pub(crate) struct Folder<'a> {
    root: &'a Path,
}

impl<'a> Folder<'a> {
    pub(crate) fn at(root: &'a Path) -> Self {
        Self { root }
    }

    /// Makes the folders that everything else needs.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        fs::create_dir_all(self.partials())
    }

    pub(crate) fn root(&self) -> &Path {
        self.root
    }

    pub(crate) fn record(&self) -> PathBuf {
        self.root.join(OURS).join("record.json")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join(OURS).join("lock")
    }

    pub(crate) fn partials(&self) -> PathBuf {
        self.root.join(OURS).join("partial")
    }

    /// Whether a file of the source would come to lie among our own.
    pub(crate) fn keeps_for_itself(path: &RelativePath) -> bool {
        path.names().next().is_some_and(|name| name.eq_ignore_ascii_case(OURS))
    }

    /// What the engine is given, if all that `conversation` is about was fetched and is still here.
    pub(crate) fn whole(&self, conversation: &Conversation) -> Option<PathBuf> {
        let record = Record::read(&self.record(), &conversation.identity());
        let paths = record.whole.get(&conversation.fingerprint())?;
        let is_here = |path: &String| {
            let found = RelativePath::parse(path).ok()?;
            let metadata = fs::metadata(found.below(self.root)).ok()?;
            let saved = record.files.get(path)?;
            (metadata.is_file() && metadata.len() == saved.size).then_some(())
        };
        paths.iter().all(|path| is_here(path).is_some()).then(|| conversation.model_path(self.root))
    }

    /// Removes partial files that nobody came back for: of other commits and other selections.
    pub(crate) fn sweep(&self) {
        let Ok(entries) = fs::read_dir(self.partials()) else { return };
        for entry in entries.flatten() {
            let changed = entry.metadata().and_then(|metadata| metadata.modified());
            let age = changed.ok().and_then(|changed| changed.elapsed().ok());
            if age.is_some_and(|age| age > FORGOTTEN) {
                // Whoever takes it just now has renamed it, or begins anew: both are right.
                let _taken = fs::remove_file(entry.path());
            }
        }
    }
}
