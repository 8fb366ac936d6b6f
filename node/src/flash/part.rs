//! A file on its way into the destination: under no name, or one of its own, until all of it is there, and
//! removed if it never is.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use flexinfer_core::loading::SHORT;
#[cfg(target_os = "linux")]
use rustix::fs::RenameFlags;
use rustix::fs::{
    AtFlags, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT, fchmod, fstat, futimens, openat,
    renameat, statat, unlinkat,
};
use rustix::io::Errno;

use super::destination::Destination;
use super::look::Entry;
use super::{state, unnamed};
use crate::inside;

/// The end of the name, as the original's, so that either clears away what the other left.
pub(super) const SUFFIX: &str = ".flash-tmp";

/// What becomes of a file that has the name of a copy when that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    WrittenOver,
    Stays,
}

pub(super) struct Part<'a> {
    pub(super) file: File,
    destination: &'a Destination<'a>,
    entry: &'a Entry,
    folder: Arc<File>,
    /// What it is called until it is whole; nothing where it needs no name.
    name: OnceLock<String>,
    mode: Mode,
    published: AtomicBool,
}

impl<'a> Part<'a> {
    /// Begins the copy of `entry` in its open `folder`, and takes the room for it on a disk, if it is long
    /// enough for that to matter.
    pub(super) fn begin(
        destination: &'a Destination<'a>,
        entry: &'a Entry,
        folder: Arc<File>,
    ) -> io::Result<Self> {
        let length = entry.found.length;
        // Its own rights, if the system lets a new file have them: that spares setting them.
        let mode = entry.mode | Mode::RUSR | Mode::WUSR;
        let name = OnceLock::new();
        let file = if length <= SHORT && destination.unnamed {
            unnamed::create(&folder, mode)?
        } else {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            File::from(openat(&folder, name.get_or_init(unique), flags, mode)?)
        };
        let mode = mode - destination.umask;
        let published = AtomicBool::new(false);
        let part = Self { file, destination, entry, folder, name, mode, published };
        if entry.found.stored < length {
            part.file.set_len(length)?;
        } else if length > SHORT && !destination.in_memory {
            // A short one is written at once, and either fits or does not. In memory, to take the room is a third
            // of the work and spares none of the rest; that it is there was looked at before.
            preallocate(&part.file, length)?;
        }
        Ok(part)
    }

    /// The file once more, with a position of its own. Only long files are wanted twice; these have a name. What
    /// somebody has put under it meanwhile is not written to.
    pub(super) fn open_again(&self) -> io::Result<File> {
        let name = self.name.get().ok_or(io::ErrorKind::NotFound)?;
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let again = File::from(openat(&self.folder, name, flags, Mode::empty())?);
        let (ours, found) = (fstat(&self.file)?, fstat(&again)?);
        if (ours.st_dev, ours.st_ino) == (found.st_dev, found.st_ino) {
            return Ok(again);
        }
        Err(io::Error::other(format!("another file has come in the place of {name}")))
    }

    /// Where it will lie.
    pub(super) fn target(&self) -> PathBuf {
        self.entry.found.path.below(self.destination.path)
    }

    /// Gives it its name, with the rights of `source` and the time that tells a later run that it is whole. What has the
    /// name already is written over, or stays and is the error that it exists.
    pub(super) fn publish(&self, source: &Stat, taken: Taken) -> io::Result<()> {
        let mode = state::rights(source);
        if mode != self.mode {
            fchmod(&self.file, mode)?;
        }
        let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
        let nanoseconds = source.st_mtime_nsec.try_into().unwrap_or_default();
        let last_modification = Timespec { tv_sec: source.st_mtime, tv_nsec: nanoseconds };
        futimens(&self.file, &Timestamps { last_access, last_modification })?;
        if !self.destination.in_memory {
            // A name must not outlive a power cut that its content does not.
            self.file.sync_data()?;
        }
        self.take_name(taken)?;
        self.published.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn take_name(&self, taken: Taken) -> io::Result<()> {
        let target = self.entry.found.path.file_name();
        let name = match self.name.get() {
            Some(name) => name,
            None => match unnamed::link(&self.file, &self.folder, target) {
                Err(Errno::EXIST) => {
                    // Only under a name can it take another's place.
                    let name = unique();
                    unnamed::link(&self.file, &self.folder, &name)?;
                    self.name.get_or_init(|| name)
                }
                linked => return Ok(linked?),
            },
        };
        let rename = || match taken {
            Taken::WrittenOver => renameat(&self.folder, name, &self.folder, target),
            Taken::Stays => into_free(&self.folder, name, target),
        };
        match rename() {
            Err(Errno::ISDIR | Errno::EXIST) if self.is_folder(target) => {
                // An earlier state of the source had a folder of this name.
                inside::remove_empty(&self.folder, OsStr::new(target), &self.target())?;
                Ok(rename()?)
            }
            renamed => Ok(renamed?),
        }
    }

    fn is_folder(&self, name: &str) -> bool {
        let found = inside::look(&self.folder, OsStr::new(name)).ok().flatten();
        found.is_some_and(|found| inside::is_folder(&found))
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        if !self.published.load(Ordering::Relaxed)
            && let Some(name) = self.name.get()
            && let Err(error) = unlinkat(&self.folder, name, AtFlags::empty())
        {
            let path = self.target().with_file_name(name);
            tracing::warn!(path = %path.display(), %error, "a half-written file is left");
        }
    }
}

/// Renames the file `name` of `folder` where nothing is called `target` yet.
fn into_free(folder: &File, name: &str, target: &str) -> rustix::io::Result<()> {
    #[cfg(target_os = "linux")]
    match rustix::fs::renameat_with(folder, name, folder, target, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        renamed => return renamed,
    }
    // A file system that has no such way, as NFS, leaves a moment in which something may still come.
    match statat(folder, target, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Err(Errno::EXIST),
        Err(Errno::NOENT) => renameat(folder, name, folder, target),
        Err(error) => Err(error),
    }
}

/// Takes the room for `length` bytes at once, so that a shortage shows before the work is done and a
/// disk lays the file out in one piece. Where that cannot be, the file grows as it is written.
fn preallocate(file: &File, length: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if length > 0 {
        use rustix::fs::{FallocateFlags, fallocate};
        match fallocate(file, FallocateFlags::empty(), 0, length) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            taken => return Ok(taken?),
        }
    }
    file.set_len(length)
}

/// A name that no other load has, on this node or another that shares the destination.
pub(super) fn unique() -> String {
    static LOAD: LazyLock<String> = LazyLock::new(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("{}-{}", std::process::id(), now.as_nanos())
    });
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!(".{}-{count}{SUFFIX}", *LOAD)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on shall fail where it stands")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use flexinfer_core::loading::{Found, Modified};
    use flexinfer_core::sources::RelativePath;

    use super::super::folders::Place;
    use super::super::state::Identity;
    use super::*;

    #[test]
    fn what_comes_in_the_place_of_a_part_is_not_written_to() {
        let (top, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = top.path().canonicalize().unwrap();
        let folder = inside::real(&path).unwrap();
        let identity = Identity::of(&fstat(&folder).unwrap());
        let destination = Destination::of(folder.try_clone().unwrap(), &path).unwrap();
        let (length, modified) = (SHORT + 1, Modified { seconds: 0, nanoseconds: 0 });
        let found =
            Found { path: RelativePath::parse("a").unwrap(), length, stored: length, modified };
        let place = Place { folder: 0, behind: None };
        let entry = Entry { found, identity, mode: Mode::RUSR, place };
        let part = Part::begin(&destination, &entry, Arc::new(folder)).unwrap();
        part.open_again().unwrap();
        let name = path.join(part.name.get().unwrap());
        let theirs = elsewhere.path().join("theirs");
        fs::write(&theirs, "theirs").unwrap();
        fs::remove_file(&name).unwrap();
        symlink(&theirs, &name).unwrap();
        part.open_again().unwrap_err();
        fs::remove_file(&name).unwrap();
        fs::write(&name, "theirs").unwrap();
        part.open_again().unwrap_err();
    }
}
