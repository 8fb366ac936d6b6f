//! Which files of the destination are ours, so that what an earlier state of the source had and this
//! one has not is removed: an engine reads a folder as it is, and must not find a mixture.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use flexinfer_core::loading::place::may_name;
use flexinfer_core::sources::RelativePath;
use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, renameat, unlinkat};
use rustix::process::geteuid;

use super::error::FlashError;
use super::own::Own;
use super::part;
use crate::inside;

/// What it is called in our folder of the destination.
pub(super) const NAME: &str = "files.json";

/// The record of the copy in the open folder `top`.
#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) top: &'a File,
    pub(super) own: &'a Own,
}

/// What a record says.
pub(super) struct Known {
    /// The files that earlier loads have put there.
    pub(super) files: Vec<RelativePath>,
    /// Whether there is a record that says nothing: a power cut may have emptied it.
    pub(super) is_torn: bool,
}

impl Record<'_> {
    /// The files that earlier loads have put there. Of a record that cannot be read, none: nothing is
    /// removed that may be somebody else's.
    pub(super) fn read(&self) -> Known {
        match self.known() {
            Ok(files) => Known { files, is_torn: false },
            Err(error) => {
                tracing::warn!(path = %self.path().display(), %error, "the record cannot be read");
                Known { files: Vec::new(), is_torn: true }
            }
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.own.path.join(NAME)
    }

    /// The same, for whoever takes the record away after it; none where there is no record.
    pub(super) fn known(&self) -> io::Result<Vec<RelativePath>> {
        let mut file = match inside::file(&self.own.folder, OsStr::new(NAME)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            file => file?,
        };
        let (mut text, writer) = (Vec::new(), fstat(&file)?.st_uid);
        file.read_to_end(&mut text)?;
        let paths = serde_json::from_slice::<Vec<String>>(&text)?;
        let paths = paths.iter().filter_map(|path| RelativePath::parse(path).ok());
        let user = geteuid().as_raw();
        Ok(paths.filter(|path| may_name(writer, user, || self.owner(path))).collect())
    }

    /// Whether a file belongs to the user of this process.
    pub(super) fn is_mine(&self, path: &RelativePath) -> bool {
        self.owner(path) == Some(geteuid().as_raw())
    }

    /// Whose a file is, if it is there.
    fn owner(&self, path: &RelativePath) -> Option<u32> {
        let (way, name) = inside::split(path);
        let folder = inside::folder(self.top, way).ok()?;
        Some(inside::look(&folder, name).ok()??.st_uid)
    }

    /// Writes which files are ours, whole or not at all; `durable` where it is to outlive a power cut.
    pub(super) fn write<'a>(
        &self,
        paths: impl Iterator<Item = &'a RelativePath>,
        durable: bool,
    ) -> Result<(), FlashError> {
        let paths = paths.map(RelativePath::as_str).collect::<Vec<_>>();
        let folder = &self.own.folder;
        let write = || {
            let temporary = part::unique();
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(0o666);
            let mut file = File::from(openat(folder, &temporary, flags, mode)?);
            let written = file.write_all(&serde_json::to_vec(&paths)?).and_then(|()| {
                // The copies that it names do.
                if durable { file.sync_data() } else { Ok(()) }
            });
            let named = written.and_then(|()| Ok(renameat(folder, &temporary, folder, NAME)?));
            if named.is_err() {
                let _half_written = unlinkat(folder, &temporary, AtFlags::empty());
            }
            named
        };
        write().map_err(|error| FlashError::writing(&self.path(), error))
    }
}

/// Removes files of ours in the open folder `top`, which is at `folder`, that are not wanted any more.
pub(super) fn remove<'a>(
    top: &File,
    folder: &Path,
    paths: impl Iterator<Item = &'a RelativePath>,
) -> Result<(), FlashError> {
    for path in paths {
        let (way, name) = inside::split(path);
        // A folder may have come in its place, or a link on the way: that is not the file that was ours.
        let Ok(parent) = inside::folder(top, way) else { continue };
        let place = path.below(folder);
        if inside::remove_file(&parent, name).map_err(|error| FlashError::writing(&place, error))? {
            tracing::info!(path = %place.display(), "removed: the source has it no more");
        }
    }
    Ok(())
}
