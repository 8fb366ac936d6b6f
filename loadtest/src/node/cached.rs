//! Sees to it that every copy begins alike: with its source whole in the page cache, from which a system that is short
//! of memory, or told to save it, takes pages at any time; or with nothing of it there.

use std::fs::{self, File};
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use anyhow::{Result, ensure};

const STEP: usize = 1 << 20;

/// How often what was cached a moment ago may be gone again.
const ATTEMPTS: usize = 3;

/// Reads the files of `folder` until all of them is cached; gives how many bytes were not.
pub(super) fn ensure_cached(folder: &Path) -> Result<u64> {
    let missed = read(folder)?;
    let mut missed_again = missed;
    for _ in 0..ATTEMPTS {
        if missed_again == 0 {
            return Ok(missed);
        }
        missed_again = read(folder)?;
    }
    ensure!(missed_again == 0, "the page cache does not keep what is to be copied; copy less");
    Ok(missed)
}

/// Has the files of `folder` dropped from the page cache; whether that is so. A file system in memory drops nothing.
pub(super) fn ensure_cold(folder: &Path) -> Result<bool> {
    forget(folder)?;
    let mut cold = true;
    for entry in fs::read_dir(folder)? {
        let file = File::open(entry?.path())?;
        let middle = file.metadata()?.len() / 2;
        let there = at_once(&file, &mut [0], middle);
        cold &= there.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
    }
    // What was looked at is there again, with some of what follows.
    forget(folder)?;
    Ok(cold)
}

fn forget(folder: &Path) -> Result<()> {
    #[cfg(target_os = "linux")]
    for entry in fs::read_dir(folder)? {
        let file = File::open(entry?.path())?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = folder;
    Ok(())
}

/// Reads all files of `folder`; gives how many bytes had to be waited for.
fn read(folder: &Path) -> Result<u64> {
    let mut buffer = vec![0; STEP];
    let mut missed = 0;
    for entry in fs::read_dir(folder)? {
        let file = File::open(entry?.path())?;
        let mut at = 0;
        loop {
            let read = match at_once(&file, &mut buffer, at) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let read = file.read_at(&mut buffer, at)? as u64;
                    missed += read;
                    read
                }
                read => read?,
            };
            if read == 0 {
                break;
            }
            at += read;
        }
    }
    Ok(missed)
}

/// Reads what is in memory. Where the file system cannot tell what is, it reads like any other.
fn at_once(file: &File, buffer: &mut [u8], at: u64) -> io::Result<u64> {
    #[cfg(target_os = "linux")]
    {
        use rustix::io::{Errno, ReadWriteFlags, preadv2};
        match preadv2(file, &mut [IoSliceMut::new(buffer)], at, ReadWriteFlags::NOWAIT) {
            Err(Errno::OPNOTSUPP) => {}
            read => return Ok(read? as u64),
        }
    }
    Ok(file.read_at(buffer, at)? as u64)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{Advice, fadvise};

    use super::*;

    #[test]
    fn what_is_on_a_disk_can_be_dropped_and_what_is_in_memory_cannot() {
        let memory = tempfile::tempdir_in("/dev/shm").unwrap();
        fs::write(memory.path().join("weights"), vec![1; 2 * STEP]).unwrap();
        assert!(!ensure_cold(memory.path()).unwrap());
        // The same in a place that may be a disk: either it is told that nothing can be dropped, or it is dropped.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("weights");
        fs::write(&path, vec![1; 2 * STEP]).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        if ensure_cold(folder.path()).unwrap() {
            assert!(ensure_cached(folder.path()).unwrap() > 0);
        }
    }

    #[test]
    fn what_is_not_cached_is_read_and_then_it_is() {
        // On a disk, as what is built is; elsewhere all of it may be in memory for good.
        let program = std::env::current_exe().unwrap();
        let folder = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
        let file = File::create_new(folder.path().join("weights")).unwrap();
        file.write_all_at(&vec![1; 3 * STEP + 5], 0).unwrap();
        // A system that is busy may not do at once what it is told, or take away what nobody told it to.
        let mut missed = (0..100).map(|_| {
            file.sync_all().unwrap();
            fadvise(&file, 0, None, Advice::DontNeed).unwrap();
            ensure_cached(folder.path()).unwrap()
        });
        assert!(missed.any(|missed| missed > 0), "what was dropped was not missed");
        let mut missed = (0..100).map(|_| ensure_cached(folder.path()).unwrap());
        assert!(missed.any(|missed| missed == 0), "what was read is not there");
    }
}
