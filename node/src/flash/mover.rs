//! Moves bytes from a file to its copy, one read at a time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use flexinfer_core::loading::SHORT;

/// Which side of a move went wrong.
#[derive(Debug)]
pub(super) enum Fault {
    Source(io::Error),
    Copy(io::Error),
    /// Reading the copy back gives other bytes.
    Different,
}

/// What is read by hand before it is written: so little that it is still in the core's own cache then.
const STRETCH: usize = 256 << 10;

/// What one worker moves with. Where nothing is checked, the kernel copies from the page cache itself,
/// which takes a fifth less processor time than to read and to write. But it does all of that while nobody
/// else can write to the copy; by hand only half of the work keeps others waiting.
pub(super) struct Mover {
    size: usize,
    verify: bool,
    by_kernel: bool,
    read: Vec<u8>,
    again: Vec<u8>,
}

impl Mover {
    /// Moves up to `size` bytes at a time, and reads back what it wrote if it is to `verify`.
    pub(super) fn new(size: usize, verify: bool) -> Self {
        let by_kernel = cfg!(target_os = "linux") && !verify;
        Self { size, verify, by_kernel, read: Vec::new(), again: Vec::new() }
    }

    /// The most that it moves at a time.
    pub(super) fn size(&self) -> u64 {
        self.size as u64
    }

    /// Moves some of the `wanted` bytes at `at`, and says how many: none where the source ends.
    /// Moves the position of `copy`. `alone` says that no other worker writes to it.
    pub(super) fn step(
        &mut self,
        source: &File,
        copy: &File,
        at: u64,
        wanted: u64,
        alone: bool,
    ) -> Result<u64, Fault> {
        let length = usize::try_from(wanted).unwrap_or(usize::MAX).min(self.size);
        // For less, moving by hand is faster: the kernel's way begins with making a pipe's pages ready.
        if self.by_kernel && alone && length as u64 > SHORT {
            match by_kernel(source, copy, at, length) {
                // Some file systems cannot: then by hand, from now on.
                Err(Fault::Source(error)) if error.kind() == io::ErrorKind::InvalidInput => {
                    self.by_kernel = false;
                }
                moved => return moved,
            }
        }
        self.by_hand(source, copy, at, length)
    }

    fn by_hand(
        &mut self,
        source: &File,
        copy: &File,
        at: u64,
        length: usize,
    ) -> Result<u64, Fault> {
        let mut moved = 0;
        while moved < length {
            let read = self.stretch(source, copy, at + moved as u64, length - moved)?;
            if read == 0 {
                break;
            }
            moved += read;
        }
        Ok(moved as u64)
    }

    fn stretch(
        &mut self,
        source: &File,
        copy: &File,
        at: u64,
        wanted: usize,
    ) -> Result<usize, Fault> {
        self.read.resize(wanted.min(STRETCH), 0);
        let read = source.read_at(&mut self.read, at).map_err(Fault::Source)?;
        self.read.truncate(read);
        copy.write_all_at(&self.read, at).map_err(Fault::Copy)?;
        if self.verify {
            self.again.resize(read, 0);
            copy.read_exact_at(&mut self.again, at).map_err(Fault::Copy)?;
            if self.again != self.read {
                return Err(Fault::Different);
            }
        }
        Ok(read)
    }
}

#[cfg(target_os = "linux")]
fn by_kernel(source: &File, copy: &File, at: u64, length: usize) -> Result<u64, Fault> {
    use rustix::fs::{SeekFrom, seek, sendfile};
    use rustix::io::Errno;
    seek(copy, SeekFrom::Start(at)).map_err(|error| Fault::Copy(error.into()))?;
    let mut from = at;
    match sendfile(copy, source, Some(&mut from), length) {
        Ok(moved) => Ok(moved as u64),
        Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => Err(Fault::Copy(error.into())),
        Err(error) => Err(Fault::Source(error.into())),
    }
}

#[cfg(not(target_os = "linux"))]
fn by_kernel(_: &File, _: &File, _: u64, _: usize) -> Result<u64, Fault> {
    Err(Fault::Source(io::ErrorKind::InvalidInput.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_move_the_same_bytes_and_say_where_the_source_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("source");
        let bytes = (0..=250).cycle().take(3 * STRETCH + 10_000).collect::<Vec<u8>>();
        std::fs::write(&path, bytes).unwrap();
        let source = File::open(&path).unwrap();
        let length = source.metadata().unwrap().len();
        for (verify, alone) in [(false, true), (false, false), (true, true)] {
            let copied = folder.path().join(format!("copy-{verify}-{alone}"));
            let mut options = File::options();
            let copy = options.read(true).write(true).create_new(true).open(&copied).unwrap();
            let mut mover = Mover::new(STRETCH + 5000, verify);
            let mut at = 0;
            loop {
                let moved = mover.step(&source, &copy, at, length, alone).unwrap();
                if moved == 0 {
                    break;
                }
                at += moved;
            }
            assert!(
                std::fs::read(&copied).unwrap() == std::fs::read(&path).unwrap(),
                "{verify} {alone}"
            );
        }
    }
}
