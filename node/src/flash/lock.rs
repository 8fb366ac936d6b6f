//! Lets several loads of one node share a destination: the second waits, and then finds everything
//! whole. Where locks do not work, names of parts are unique, nobody sweeps
//! away what another may still write, and nothing goes wrong.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::error::FlashError;

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

/// Waits for the lock at `path`; `None` where the file system has no locks.
pub(super) fn acquire(path: &Path, stopped: &AtomicBool) -> Result<Option<Lock>, FlashError> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(|error| FlashError::writing(path, error))?;
    let mut told = None::<Instant>;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(Lock { _file: file })),
            Err(Errno::WOULDBLOCK) => {
                if stopped.load(Ordering::Relaxed) {
                    return Err(FlashError::Stopped);
                }
                if told.is_none_or(|last| last.elapsed() >= TELLING) {
                    told = Some(Instant::now());
                    tracing::info!(path = %path.display(), "waiting for another load");
                }
                std::thread::sleep(INTERVAL);
            }
            Err(Errno::INTR) => {}
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "this file system has no locks");
                return Ok(None);
            }
        }
    }
}
