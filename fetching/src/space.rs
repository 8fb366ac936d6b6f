//! Tells before a download begins that it will not fit.

use std::path::Path;

use flexinfer_core::activation::{Failure, Reason, bytes_in_words};

use crate::failures;

/// Whether `wanted` more bytes fit on the disk of `folder`, as far as it can be told now.
pub(crate) fn check(folder: &Path, wanted: u64) -> Result<(), Failure> {
    let disk = rustix::fs::statvfs(folder)
        .map_err(|error| failures::of_file("measuring the disk of", folder, &error.into()))?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if wanted <= free {
        return Ok(());
    }
    Err(Failure::new(
        Reason::DiskFull,
        format!(
            "{} are still to be downloaded into {} and {} are free; make room or choose another \
             data folder",
            bytes_in_words(wanted),
            folder.display(),
            bytes_in_words(free)
        ),
    ))
}
