//! The plainest fast copy: as many threads as cores, each with a file's next 4 MiB, read into a buffer and
//! written to a file whose room was taken before.

use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result};
use rustix::fs::{FallocateFlags, fallocate};

const PIECE: u64 = 4 << 20;

/// A stretch of a file, and the two places of that file.
struct Piece<'a> {
    source: &'a Path,
    copy: &'a Path,
    at: u64,
}

/// Copies the files of the folder `from` to `to`, which is made.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to).with_context(|| format!("cannot create {}", to.display()))?;
    let mut files = Vec::new();
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, copy) = (entry.path(), to.join(entry.file_name()));
        let length = entry.metadata()?.len();
        let file = File::create_new(&copy)?;
        if length > 0 {
            fallocate(&file, FallocateFlags::empty(), 0, length)?;
        }
        files.push((source, copy, length));
    }
    let pieces = files.iter().flat_map(|(source, copy, length)| {
        (0..length.div_ceil(PIECE)).map(move |piece| Piece { source, copy, at: piece * PIECE })
    });
    let pieces = pieces.collect::<Vec<_>>();
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        let work = || work(&pieces, &next);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|_| anyhow::bail!("a thread of the yardstick gave up"))
        })
    })
}

/// Copies pieces as long as there are any. Files are opened for each, as a system lets nobody hold open all of
/// a great many.
fn work(pieces: &[Piece<'_>], next: &AtomicUsize) -> Result<()> {
    let mut buffer = vec![0; usize::try_from(PIECE)?];
    while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
        let source = File::open(piece.source)?;
        let copy = File::options().write(true).open(piece.copy)?;
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match source.read_at(rest, piece.at + filled as u64)? {
                0 => break,
                read => filled += read,
            }
        }
        copy.write_all_at(buffer.get(..filled).unwrap_or_default(), piece.at)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_yardstick_holds_few_files_open() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("from");
        fs::create_dir(&from).unwrap();
        // More than a shell commonly lets its programs have open.
        for number in 0..3000 {
            fs::write(from.join(number.to_string()), number.to_string()).unwrap();
        }
        let to = folder.path().join("to");
        let open = || fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        let most = thread::scope(|scope| {
            let copying = scope.spawn(|| copy(&from, &to).unwrap());
            let mut most = 0;
            while !copying.is_finished() {
                most = most.max(open());
            }
            most
        });
        assert!(most < 1000, "{most} files were open");
        assert_eq!(fs::read(to.join("2999")).unwrap(), b"2999");
    }

    #[test]
    fn the_yardstick_copies_every_byte() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("from");
        fs::create_dir(&from).unwrap();
        let bytes: Vec<u8> = (0..=250).cycle().take(9_000_001).collect();
        fs::write(from.join("a"), &bytes).unwrap();
        fs::write(from.join("empty"), b"").unwrap();
        let to = folder.path().join("to");
        copy(&from, &to).unwrap();
        assert!(fs::read(to.join("a")).unwrap() == bytes);
        assert_eq!(fs::read(to.join("empty")).unwrap(), b"");
    }
}
