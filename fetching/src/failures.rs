//! Turns errors of files and sockets into failures that a person can act on.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use flexinfer_core::activation::{Failure, Reason};

/// `error` and everything behind it, on one line.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let _infallible = write!(text, ": {error}");
        source = error.source();
    }
    text
}

/// The failure of `doing` something with `path`.
pub(crate) fn of_file(doing: &str, path: &Path, error: &io::Error) -> Failure {
    let place = path.display();
    match error.kind() {
        io::ErrorKind::StorageFull => Failure::new(
            Reason::DiskFull,
            format!("the disk ran full while {doing} {place}; make room, what is there is kept"),
        ),
        io::ErrorKind::QuotaExceeded => Failure::new(
            Reason::DiskFull,
            format!("the quota ran out while {doing} {place}; make room, what is there is kept"),
        ),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Failure::new(
            Reason::InvalidConfig,
            format!("{doing} {place} is not allowed ({error}); choose a folder we may write to"),
        ),
        _ => Failure::new(Reason::DownloadFailed, format!("{doing} {place} failed: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_as_such() {
        for (errno, reason) in [
            (rustix::io::Errno::NOSPC, Reason::DiskFull),
            (rustix::io::Errno::DQUOT, Reason::DiskFull),
            (rustix::io::Errno::ROFS, Reason::InvalidConfig),
            (rustix::io::Errno::IO, Reason::DownloadFailed),
        ] {
            let failure = of_file("writing", Path::new("/d/x"), &io::Error::from(errno));
            assert_eq!(failure.reason, reason, "{failure}");
            assert!(failure.message.contains("/d/x"), "{failure}");
        }
    }
}
