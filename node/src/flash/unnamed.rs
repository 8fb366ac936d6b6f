//! Files that have no name until they are whole, where the file system has such (Linux: `O_TMPFILE`). Of these a
//! kill leaves nothing behind, and to name one takes less time than to rename one.

use std::fs::File;

#[cfg(target_os = "linux")]
pub(super) use linux::{create, link};
#[cfg(not(target_os = "linux"))]
pub(super) use named_only::{create, link};
use rustix::fs::{AtFlags, Mode, unlinkat};

/// Whether files in `folder` can do without a name and be given one.
pub(super) fn are_known_in(folder: &File) -> bool {
    let trial = super::part::unique();
    let Ok(file) = create(folder, Mode::RUSR) else { return false };
    let linked = link(&file, folder, &trial);
    linked.is_ok() && unlinkat(folder, &trial, AtFlags::empty()).is_ok()
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::os::fd::AsRawFd as _;

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat};
    use rustix::io::{Errno, Result};

    /// A new file in `folder`.
    pub(in super::super) fn create(folder: &File, mode: Mode) -> Result<File> {
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        openat(folder, ".", flags, mode).map(File::from)
    }

    /// Gives it a name that nothing has yet.
    pub(in super::super) fn link(file: &File, folder: &File, name: &str) -> Result<()> {
        match linkat(file, "", folder, name, AtFlags::EMPTY_PATH) {
            Err(Errno::NOENT | Errno::PERM) => {
                // Until Linux 6.10 only the privileged may do it in this short way.
                let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
                linkat(CWD, itself, folder, name, AtFlags::SYMLINK_FOLLOW)
            }
            linked => linked,
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod named_only {
    use std::fs::File;

    use rustix::fs::Mode;
    use rustix::io::{Errno, Result};

    pub(in super::super) fn create(_: &File, _: Mode) -> Result<File> {
        Err(Errno::OPNOTSUPP)
    }

    pub(in super::super) fn link(_: &File, _: &File, _: &str) -> Result<()> {
        Err(Errno::OPNOTSUPP)
    }
}
