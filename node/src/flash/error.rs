//! What can go wrong with a load. Each names the file and says what to do.

use std::io;
use std::path::{Path, PathBuf};

use flexinfer_core::activation::{Failure, Reason};
use flexinfer_core::loading::Shortage;
use flexinfer_core::loading::place::Unfit;
use rustix::io::Errno;

#[derive(Debug, thiserror::Error)]
pub(super) enum FlashError {
    #[error("{} is not a folder that can be read; check --src (FLASH_SRC)", .path.display())]
    NoSource {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} cannot be copied: {why}", .path.display())]
    BadEntry { path: PathBuf, why: &'static str },
    #[error(
        "{} is a link to {}, outside of {}; set --root (FLASH_ROOT) if that is meant",
        .path.display(), .target.display(), .root.display()
    )]
    Outside { path: PathBuf, target: PathBuf, root: PathBuf },
    #[error("{} cannot be used: {why}", .path.display())]
    Misplaced { path: PathBuf, why: &'static str },
    #[error("{} is no place for weights: {why}", .path.display())]
    NoPlace { path: PathBuf, why: Unfit },
    #[error(
        "{} is there already and no load has put it there, so that it is not written over; name another folder with \
         --dst (FLASH_DST), or take it away",
        .path.display()
    )]
    Theirs { path: PathBuf },
    #[error(
        "{} is there already, and {}, which would tell whether a load has put it there, cannot be read; take both away, or \
         name another folder with --dst (FLASH_DST)",
        .path.display(), .record.display()
    )]
    Untold { path: PathBuf, record: PathBuf },
    #[error("reading {} failed", .path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("writing {} failed", .path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("there is not enough room in {}: {shortage}", .path.display())]
    NoRoom { path: PathBuf, shortage: Shortage },
    #[error("{0}")]
    Damaged(Failure),
    #[error("{} was changed or removed while it was copied; let its writer finish first", .path.display())]
    Changed { path: PathBuf },
    #[error("{} was written and reads back otherwise; check the memory of this node", .path.display())]
    Different { path: PathBuf },
    #[error(
        "{} has the SHA-256 {found} and its name says {wanted}; get it again",
        .path.display()
    )]
    Digest { path: PathBuf, wanted: String, found: String },
    #[error("the load was stopped")]
    Stopped,
}

impl FlashError {
    /// The failure of reading a file that was there a moment ago.
    pub(super) fn reading(path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        let gone = source.kind() == io::ErrorKind::NotFound
            || Errno::from_io_error(&source) == Some(Errno::STALE);
        if gone { Self::Changed { path } } else { Self::Read { path, source } }
    }

    pub(super) fn writing(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_path_buf(), source }
    }

    /// The reason that the exit status tells, where trying again is no use until somebody has done something; `None`
    /// where it may be.
    pub(super) fn reason(&self) -> Option<Reason> {
        match self {
            Self::NoSource { .. } | Self::BadEntry { .. } | Self::Outside { .. } => {
                Some(Reason::BadSource)
            }
            Self::Misplaced { .. }
            | Self::NoPlace { .. }
            | Self::Theirs { .. }
            | Self::Untold { .. } => Some(Reason::InvalidConfig),
            Self::Damaged(failure) => Some(failure.reason),
            Self::Digest { .. } => Some(Reason::DigestMismatch),
            Self::NoRoom { .. } => Some(Reason::DiskFull),
            Self::Read { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some(Reason::BadSource)
            }
            Self::Write { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(Reason::DiskFull),
                io::ErrorKind::PermissionDenied
                | io::ErrorKind::ReadOnlyFilesystem
                | io::ErrorKind::NotADirectory => Some(Reason::InvalidConfig),
                _ => None,
            },
            Self::Read { .. } | Self::Changed { .. } | Self::Different { .. } | Self::Stopped => {
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_trying_again_cannot_mend_has_a_reason() {
        let place = Path::new("/models/llama");
        for (errno, reading, writing) in [
            (Errno::NOSPC, None, Some(Reason::DiskFull)),
            (Errno::DQUOT, None, Some(Reason::DiskFull)),
            (Errno::ACCESS, Some(Reason::BadSource), Some(Reason::InvalidConfig)),
            (Errno::PERM, Some(Reason::BadSource), Some(Reason::InvalidConfig)),
            (Errno::ROFS, None, Some(Reason::InvalidConfig)),
            (Errno::NOTDIR, None, Some(Reason::InvalidConfig)),
            (Errno::IO, None, None),
        ] {
            assert_eq!(FlashError::reading(place, errno.into()).reason(), reading, "{errno}");
            assert_eq!(FlashError::writing(place, errno.into()).reason(), writing, "{errno}");
        }
    }
}
