//! The parts of a file that are not holes.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// The unit in which a file's blocks are counted, whatever the file system's own.
const COUNTED: u64 = 512;

/// Whether a file takes less room than it is long.
pub(super) fn may_have_holes(metadata: &Metadata) -> bool {
    metadata.blocks().saturating_mul(COUNTED) < metadata.len()
}

/// The spans of `range` that hold something, in order. Moves the file's position. Where the file
/// system knows no holes, the whole range is one span.
pub(super) fn stored(
    file: &File,
    range: Range<u64>,
) -> impl Iterator<Item = io::Result<Range<u64>>> + '_ {
    let mut at = range.start;
    std::iter::from_fn(move || {
        if at >= range.end {
            return None;
        }
        let span = next(file, at, range.end);
        at = match &span {
            Ok(Some(span)) => span.end,
            Ok(None) | Err(_) => range.end,
        };
        span.transpose()
    })
}

fn next(file: &File, at: u64, end: u64) -> io::Result<Option<Range<u64>>> {
    let start = match seek(file, SeekFrom::Data(at)) {
        Ok(start) if start >= end => return Ok(None),
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(Some(at..end)),
        Err(error) => return Err(error.into()),
    };
    let hole = seek(file, SeekFrom::Hole(start))?;
    Ok(Some(start..hole.min(end)))
}
