//! The loader's own folder beside a copy, with its lock and its record. A link in its place is none of ours.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

use super::error::FlashError;
use super::making::{self, NoFolder};
use crate::inside;

/// What it is called.
pub(super) const OURS: &str = ".flash";

/// The file in it that says that a load was given the folder for its copy alone: all copies below are known to be such.
pub(super) const ALONE: &str = "alone";

#[derive(Debug)]
pub(super) struct Own {
    pub(super) folder: File,
    pub(super) path: PathBuf,
}

impl Own {
    /// That of the open folder `top`, which is at `path`; made if it is not there.
    pub(super) fn make(top: &File, path: &Path) -> Result<Self, FlashError> {
        let path = path.join(OURS);
        match making::folder(top, OsStr::new(OURS), NoFolder::Stays) {
            Ok(folder) => Ok(Self { folder, path }),
            Err(error) if is_no_folder(&error) => {
                let why =
                    "a link or a file is in the place of the loader's own folder; take it away";
                Err(FlashError::Misplaced { path, why })
            }
            Err(error) => Err(FlashError::writing(&path, error)),
        }
    }

    /// That of the open folder `top`, which is at `path`.
    pub(super) fn of(top: &File, path: &Path) -> io::Result<Self> {
        Ok(Self { folder: inside::folder(top, Path::new(OURS))?, path: path.join(OURS) })
    }

    /// Leaves the mark that the folder is for one copy alone.
    pub(super) fn mark_alone(&self) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        match openat(&self.folder, ALONE, flags, Mode::from_raw_mode(0o666)) {
            Ok(_) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether a folder could not be opened since that is none. Systems say it in two ways of a link.
fn is_no_folder(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOTDIR | Errno::LOOP))
}
