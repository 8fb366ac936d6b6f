//! The parts of a file that are not holes.

use std::fs::File;
use std::io;
use std::ops::Range;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

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
