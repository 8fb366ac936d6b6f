//! Lets several loads of one node share a destination: the second waits, and then finds everything
//! whole. Where locks do not work, names of parts are unique, nobody sweeps
//! away what another may still write, and nothing goes wrong.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, openat};
use rustix::io::Errno;

use super::error::FlashError;
use super::own::Own;
use crate::inside;

/// What the file is called that is locked.
pub(super) const LOCK: &str = "lock";

/// How often it is looked whether the other has finished.
const INTERVAL: Duration = Duration::from_millis(50);

/// How often it is told that we still wait.
const TELLING: Duration = Duration::from_secs(5);

/// The lock on a destination, given back when dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// Waits for the lock in `own`; `None` where the file system has no locks.
pub(super) fn acquire(own: &Own, stopped: &AtomicBool) -> Result<Option<Lock>, FlashError> {
    wait(&own.path.join(LOCK), stopped, || attempt(own))
}

/// Does what another load's lock keeps from being done, as soon as that is given back; it is the lock at `path`.
pub(super) fn wait<T>(
    path: &Path,
    stopped: &AtomicBool,
    mut attempt: impl FnMut() -> io::Result<T>,
) -> Result<T, FlashError> {
    let mut told = None::<Instant>;
    loop {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if stopped.load(Ordering::Relaxed) {
                    return Err(FlashError::Stopped);
                }
                if told.is_none_or(|last| last.elapsed() >= TELLING) {
                    told = Some(Instant::now());
                    tracing::info!(path = %path.display(), "waiting for another load");
                }
                std::thread::sleep(INTERVAL);
            }
            done => return done.map_err(|error| FlashError::writing(path, error)),
        }
    }
}

/// Takes the lock in `own` if nobody else has it; `None` where the file system has no locks.
pub(super) fn attempt(own: &Own) -> io::Result<Option<Lock>> {
    loop {
        // Neither a link nor a pipe in its place is anything to wait for.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mode = Mode::from_raw_mode(0o666);
        let file = File::from(openat(&own.folder, LOCK, flags | OFlags::CLOEXEC, mode)?);
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // Whoever has removed the copy meanwhile has removed its lock: then that keeps nobody out.
            Ok(()) if !is_in(own, &file)? => {}
            Ok(()) => return Ok(Some(Lock { _file: file })),
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => {
                let path = own.path.join(LOCK);
                tracing::warn!(path = %path.display(), %error, "this file system has no locks");
                return Ok(None);
            }
        }
    }
}

/// Whether `file` is what everybody else finds under that name.
fn is_in(own: &Own, file: &File) -> io::Result<bool> {
    let (ours, found) = (fstat(file)?, inside::look(&own.folder, OsStr::new(LOCK))?);
    Ok(found.is_some_and(|found| (found.st_dev, found.st_ino) == (ours.st_dev, ours.st_ino)))
}
