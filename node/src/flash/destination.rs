//! The folder that copies go to: what its file system is like, what is in it already, and whether there is room.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flexinfer_core::loading::{Found, Plan, Present};
use flexinfer_core::sources::RelativePath;
use rustix::fs::{AtFlags, Dir, Mode, Stat, fstatvfs, statat};

use super::error::FlashError;
use super::folders::{Folder, Opened};
use super::look::{Entry, Seen};
use super::making::{self, NoFolder};
use super::own::{OURS, Own};
use super::record::Record;
use super::{part, state, unnamed};
use crate::inside;

pub(super) struct Destination<'a> {
    pub(super) path: &'a Path,
    pub(super) folder: File,
    /// Its folder that is our own.
    pub(super) own: Own,
    /// Whether it is in memory: then nothing outlives a power cut.
    pub(super) in_memory: bool,
    /// Whether files may do without a name until they are whole.
    pub(super) unnamed: bool,
    /// The rights that new files do not get.
    pub(super) umask: Mode,
}

impl<'a> Destination<'a> {
    /// The destination in the open `folder`, which is at `path`.
    pub(super) fn of(folder: File, path: &'a Path) -> Result<Self, FlashError> {
        let writing = |error| FlashError::writing(path, error);
        let own = Own::make(&folder, path)?;
        let in_memory = is_in_memory(&own.folder).map_err(writing)?;
        let unnamed = unnamed::are_known_in(&own.folder);
        // The system tells it only to whoever sets it. Nobody else makes files yet.
        let umask = rustix::process::umask(Mode::empty());
        rustix::process::umask(umask);
        Ok(Self { path, folder, own, in_memory, unnamed, umask })
    }

    /// Which of the files there are ours.
    pub(super) fn record(&self) -> Record<'_> {
        Record { top: &self.folder, own: &self.own }
    }

    /// Whether nothing is there but what is our own. Then none of a great many files is looked for.
    pub(super) fn is_fresh(&self) -> bool {
        let ours = |name: &[u8]| [".".as_bytes(), b"..", OURS.as_bytes()].contains(&name);
        let mut entries = Dir::read_from(&self.folder).into_iter().flatten();
        entries.all(|entry| entry.is_ok_and(|entry| ours(entry.file_name().to_bytes())))
    }

    /// Makes the folders of `files`, each once and not once a file.
    pub(super) fn make_folders(
        &self,
        seen: &Seen,
        files: &[&Entry],
        other: NoFolder,
    ) -> Result<(), FlashError> {
        let numbers = files.iter().map(|entry| entry.place.folder).collect::<BTreeSet<_>>();
        for folder in numbers.into_iter().filter_map(|number| seen.folders.get(number)) {
            let mut above =
                self.folder.try_clone().map_err(|error| FlashError::writing(self.path, error))?;
            let mut path = self.path.to_path_buf();
            for name in folder.way() {
                path.push(name);
                let made = making::folder(&above, name, other);
                above = made.map_err(|error| FlashError::writing(&path, error))?;
            }
        }
        Ok(())
    }

    /// Removes the parts that killed loads have left in these folders, and in those of the files that earlier loads
    /// have put there. Where the destination is not `locked`, a part may be another's that is still written: only what
    /// nobody has touched for long goes.
    pub(super) fn sweep(
        &self,
        folders: &[Folder],
        ours: &[RelativePath],
        locked: bool,
    ) -> Result<(), FlashError> {
        let mut swept = folders.iter().map(Folder::way).collect::<BTreeSet<_>>();
        swept.extend(ours.iter().map(|file| inside::split(file).0));
        swept.insert(Path::new(OURS));
        let is_part = |name: &OsStr| name.to_str().is_some_and(|name| name.ends_with(part::SUFFIX));
        for way in swept {
            // A folder that is not there yet has nothing in it.
            let Ok(folder) = inside::folder(&self.folder, way) else { continue };
            let path = |name: &OsStr| self.path.join(way).join(name);
            for (name, _) in inside::entries(&folder).unwrap_or_default() {
                let left = || {
                    inside::look(&folder, &name)
                        .is_ok_and(|part| part.is_some_and(|part| locked || is_old(&part)))
                };
                if is_part(&name) && left() {
                    let removed = inside::remove_file(&folder, &name);
                    removed.map_err(|error| FlashError::writing(&path(&name), error))?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn check_room<F: AsRef<Found>>(&self, plan: &Plan<F>) -> Result<(), FlashError> {
        let disk =
            fstatvfs(&self.folder).map_err(|error| FlashError::writing(self.path, error.into()))?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        // A tmpfs without a limit says that it has no blocks at all.
        let unlimited = disk.f_blocks == 0;
        let checked = if unlimited { Ok(()) } else { plan.room().check(free) };
        let path = || self.path.to_path_buf();
        checked.map_err(|shortage| FlashError::NoRoom { path: path(), shortage })
    }
}

/// Whether nobody has written to a part, or changed anything else of it, for so long that its load has ended.
fn is_old(part: &Stat) -> bool {
    const LONG: Duration = Duration::from_hours(24);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let changed = u64::try_from(part.st_ctime).map(Duration::from_secs).unwrap_or_default();
    now.saturating_sub(changed) > LONG
}

/// Whether anything has the name of `entry`, in the open folders of a destination.
pub(super) fn is_taken(folders: &mut Opened<'_>, entry: &Entry) -> bool {
    let name = OsStr::new(entry.found.path.file_name());
    let found = folders.get(entry.place.folder).and_then(|folder| inside::look(folder, name));
    found.is_ok_and(|found| found.is_some())
}

/// What there is under the name of `entry`, in the open folders of a destination.
pub(super) fn present(folders: &mut Opened<'_>, entry: &Entry) -> Option<Present> {
    let folder = folders.get(entry.place.folder).ok()?;
    let stat = statat(folder, entry.found.path.file_name(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    state::present(&stat)
}

#[cfg(target_os = "linux")]
pub(crate) fn is_in_memory(folder: &File) -> io::Result<bool> {
    /// What tmpfs and ramfs call themselves.
    const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    let kind = rustix::fs::fstatfs(folder)?.f_type;
    Ok(IN_MEMORY.iter().any(|known| u64::try_from(kind).is_ok_and(|kind| kind == *known)))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_in_memory(_: &File) -> io::Result<bool> {
    Ok(false)
}
