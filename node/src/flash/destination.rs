//! The folder that copies go to: what its file system is like, what is in it already, and whether there is room.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flexinfer_core::loading::{Found, Plan, Present};
use flexinfer_core::sources::RelativePath;
use rustix::fs::{AtFlags, Mode, statat, statvfs};

use super::error::FlashError;
use super::folders::{Folder, Opened};
use super::look::{Entry, Seen};
use super::{part, state, unnamed};

/// The folder in the destination that is our own.
pub(super) const OURS: &str = ".flash";

pub(super) struct Destination<'a> {
    pub(super) path: &'a Path,
    /// Whether it is in memory: then nothing outlives a power cut.
    pub(super) in_memory: bool,
    /// Whether files may do without a name until they are whole.
    pub(super) unnamed: bool,
    /// The rights that new files do not get.
    pub(super) umask: Mode,
}

impl<'a> Destination<'a> {
    /// The destination at `path`, made if it is not there.
    pub(super) fn make(path: &'a Path) -> Result<Self, FlashError> {
        let ours = path.join(OURS);
        let writing = |error| FlashError::writing(&ours, error);
        fs::create_dir_all(&ours).map_err(writing)?;
        let folder = File::open(&ours).map_err(writing)?;
        let in_memory = is_in_memory(&folder).map_err(writing)?;
        let unnamed = unnamed::are_known_in(&folder);
        // The system tells it only to whoever sets it. Nobody else makes files yet.
        let umask = rustix::process::umask(Mode::empty());
        rustix::process::umask(umask);
        Ok(Self { path, in_memory, unnamed, umask })
    }

    /// Where something of our own lies.
    pub(super) fn ours(&self, name: &str) -> PathBuf {
        self.path.join(OURS).join(name)
    }

    /// Whether nothing is there but what is our own. Then none of a great many files is looked for.
    pub(super) fn is_fresh(&self) -> bool {
        let ours =
            |entry: io::Result<fs::DirEntry>| entry.is_ok_and(|entry| entry.file_name() == OURS);
        fs::read_dir(self.path).is_ok_and(|mut entries| entries.all(ours))
    }

    /// Makes the folders of `files`, each once and not once a file.
    pub(super) fn make_folders(&self, seen: &Seen, files: &[&Entry]) -> Result<(), FlashError> {
        let numbers = files.iter().map(|entry| entry.place.folder).collect::<BTreeSet<_>>();
        for folder in numbers.into_iter().filter_map(|number| seen.folders.get(number)) {
            let folder = folder.below(self.path);
            fs::create_dir_all(&folder).map_err(|error| FlashError::writing(&folder, error))?;
        }
        Ok(())
    }

    /// Removes the parts that killed loads have left in these folders, and in those of the files that earlier loads
    /// have put there. Where we are not `alone`, a part may be another's that is still written: only what nobody has
    /// touched for long goes.
    pub(super) fn sweep(
        &self,
        folders: &[Folder],
        ours: &[RelativePath],
        alone: bool,
    ) -> Result<(), FlashError> {
        let mut swept =
            folders.iter().map(|folder| folder.below(self.path)).collect::<BTreeSet<_>>();
        swept.extend(
            ours.iter().filter_map(|file| Some(file.below(self.path).parent()?.to_path_buf())),
        );
        swept.insert(self.path.join(OURS));
        for folder in swept {
            // A folder that is not there yet has nothing in it.
            let Ok(entries) = fs::read_dir(folder) else { continue };
            for entry in entries.flatten() {
                let left =
                    entry.file_name().to_str().is_some_and(|name| name.ends_with(part::SUFFIX));
                let ours = || {
                    entry.metadata().is_ok_and(|part| part.is_file() && (alone || is_old(&part)))
                };
                if left && ours() {
                    let path = entry.path();
                    fs::remove_file(&path).map_err(|error| FlashError::writing(&path, error))?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn check_room<F: AsRef<Found>>(&self, plan: &Plan<F>) -> Result<(), FlashError> {
        let disk =
            statvfs(self.path).map_err(|error| FlashError::writing(self.path, error.into()))?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        // A tmpfs without a limit says that it has no blocks at all.
        let unlimited = disk.f_blocks == 0;
        let checked = if unlimited { Ok(()) } else { plan.room().check(free) };
        let path = || self.path.to_path_buf();
        checked.map_err(|shortage| FlashError::NoRoom { path: path(), shortage })
    }
}

/// Whether nobody has written to a part, or changed anything else of it, for so long that its load has ended.
fn is_old(part: &fs::Metadata) -> bool {
    const LONG: Duration = Duration::from_hours(24);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let changed = u64::try_from(part.ctime()).map(Duration::from_secs).unwrap_or_default();
    now.saturating_sub(changed) > LONG
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
