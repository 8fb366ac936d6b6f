//! What tells one state of a file from another, and a copy that is whole from one that is not.

use flexinfer_core::loading::{Modified, Present};
use rustix::fs::{FileType, Mode, Stat};

/// One state of a file of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
    pub(super) length: u64,
    pub(super) modified: Modified,
}

impl Identity {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            device: number(stat.st_dev),
            inode: number(stat.st_ino),
            length: number(stat.st_size),
            modified: modified(stat),
        }
    }
}

/// Whether a file takes less room than it is long.
pub(super) fn may_have_holes(stat: &Stat) -> bool {
    /// The unit in which blocks are counted, whatever the file system's own.
    const COUNTED: u64 = 512;
    number(stat.st_blocks).saturating_mul(COUNTED) < number(stat.st_size)
}

/// What its owner, group and others may do with a file.
pub(super) fn rights(stat: &Stat) -> Mode {
    Mode::from_raw_mode(stat.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO)
}

/// What the destination holds, if that is a file.
pub(super) fn present(stat: &Stat) -> Option<Present> {
    let file = FileType::from_raw_mode(stat.st_mode).is_file();
    file.then(|| Present { length: number(stat.st_size), modified: modified(stat) })
}

fn modified(stat: &Stat) -> Modified {
    let nanoseconds = stat.st_mtime_nsec.try_into().unwrap_or_default();
    Modified { seconds: stat.st_mtime, nanoseconds }
}

/// Systems have these numbers in types of several widths and signs; none is ever negative.
fn number(of_system: impl TryInto<u64>) -> u64 {
    of_system.try_into().unwrap_or_default()
}
