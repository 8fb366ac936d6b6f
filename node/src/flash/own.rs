//! The loader's own folder beside a copy, with its lock and its record. A link in its place is none of ours.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

use super::making;
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
    pub(super) fn make(top: &File, path: &Path) -> io::Result<Self> {
        Ok(Self { folder: making::folder(top, OsStr::new(OURS), false)?, path: path.join(OURS) })
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
