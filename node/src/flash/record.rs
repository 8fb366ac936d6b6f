//! Which files of the destination are ours, so that what an earlier state of the source had and this
//! one has not is removed: an engine reads a folder as it is, and must not find a mixture.

use std::fs;
use std::path::{Path, PathBuf};

use flexinfer_core::sources::RelativePath;

use super::error::FlashError;
use super::part;

/// What it is called in our folder of the destination.
pub(super) const NAME: &str = "files.json";

pub(super) struct Record {
    path: PathBuf,
}

impl Record {
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// The files that earlier loads have put there. Of a record that cannot be read, none: nothing is
    /// removed that may be somebody else's.
    pub(super) fn read(&self) -> Vec<RelativePath> {
        let text = fs::read(&self.path).unwrap_or_default();
        let paths = serde_json::from_slice::<Vec<String>>(&text).unwrap_or_default();
        paths.iter().filter_map(|path| RelativePath::parse(path).ok()).collect()
    }

    /// Writes which files are ours, whole or not at all.
    pub(super) fn write<'a>(
        &self,
        paths: impl Iterator<Item = &'a RelativePath>,
    ) -> Result<(), FlashError> {
        let paths = paths.map(RelativePath::as_str).collect::<Vec<_>>();
        let write = || {
            let temporary = self.path.with_file_name(part::unique());
            fs::write(&temporary, serde_json::to_vec(&paths)?)?;
            fs::rename(&temporary, &self.path)
        };
        write().map_err(|error| FlashError::writing(&self.path, error))
    }
}

/// Removes files of ours that are not wanted any more.
pub(super) fn remove<'a>(
    folder: &Path,
    paths: impl Iterator<Item = &'a RelativePath>,
) -> Result<(), FlashError> {
    for path in paths {
        let place = path.below(folder);
        // A folder may have come in its place: that is not the file that was ours.
        if fs::symlink_metadata(&place).is_ok_and(|metadata| metadata.is_file()) {
            fs::remove_file(&place).map_err(|error| FlashError::writing(&place, error))?;
            tracing::info!(path = %place.display(), "removed: the source has it no more");
        }
    }
    Ok(())
}
