//! A file on its way into the destination: under a name of its own until all of it is there, and
//! removed if it never is.

use std::fs::{self, File, FileTimes, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::walk::Entry;

/// The end of the name, as the original's, so that either clears away what the other left.
pub(super) const SUFFIX: &str = ".flash-tmp";

/// Up to this length a file is written at once, and either fits or does not.
const ONE_WRITE: u64 = 32 << 10;

pub(super) struct Part {
    pub(super) file: File,
    path: PathBuf,
    target: PathBuf,
    published: AtomicBool,
}

impl Part {
    /// Begins the copy of `entry` that will be called `target`, in a folder that is there, and takes
    /// the room for it, if it is long enough for that to matter.
    pub(super) fn begin(entry: &Entry, target: PathBuf) -> io::Result<Self> {
        let folder = target.parent().unwrap_or(Path::new("."));
        let path = folder.join(format!(".{}{SUFFIX}", unique()));
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        let part = Self { file, path, target, published: AtomicBool::new(false) };
        let length = entry.found.length;
        if entry.found.stored < length {
            part.file.set_len(length)?;
        } else if length > ONE_WRITE {
            preallocate(&part.file, length)?;
        }
        Ok(part)
    }

    /// The file once more, with a position of its own.
    pub(super) fn open_again(&self) -> io::Result<File> {
        File::options().read(true).write(true).open(&self.path)
    }

    /// Where it lies now.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where it will lie.
    pub(super) fn target(&self) -> &Path {
        &self.target
    }

    /// Gives it its name, with the rights of `source` and the time that tells a later run that it is
    /// whole.
    pub(super) fn publish(&self, source: &fs::Metadata) -> io::Result<()> {
        let mode = source.permissions().mode() & 0o777;
        self.file.set_permissions(Permissions::from_mode(mode))?;
        self.file.set_times(FileTimes::new().set_modified(source.modified()?))?;
        // On a disk, a name must not outlive a power cut that its content does not; in memory it
        // costs nothing.
        self.file.sync_data()?;
        match fs::rename(&self.path, &self.target) {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                // An earlier state of the source had a folder of this name.
                fs::remove_dir_all(&self.target)?;
                fs::rename(&self.path, &self.target)?;
            }
            renamed => renamed?,
        }
        self.published.store(true, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.published.load(Ordering::Relaxed)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "a half-written file is left");
        }
    }
}

/// Takes the room for `length` bytes at once, so that a shortage shows before the work is done and a
/// disk lays the file out in one piece. Where that cannot be, the file grows as it is written.
fn preallocate(file: &File, length: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if length > 0 {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        match fallocate(file, FallocateFlags::empty(), 0, length) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            taken => return Ok(taken?),
        }
    }
    file.set_len(length)
}

/// A name that no other load has, on this node or another that shares the destination.
fn unique() -> String {
    static LOAD: LazyLock<String> = LazyLock::new(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("{}-{}", std::process::id(), now.as_nanos())
    });
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{count}", *LOAD)
}
