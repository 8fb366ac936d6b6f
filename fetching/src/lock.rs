//! Lets the second download into a folder wait for the first. Only a courtesy: where locks do not
//! work, partial files have owners and nothing goes wrong (LOAD-02).

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// How often it is looked whether the other has finished.
const INTERVAL: Duration = Duration::from_millis(100);

/// How often it is told that we still wait: silence would be taken for a download that hangs.
const TELLING: Duration = Duration::from_secs(2);

/// The lock on a folder, given back when dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// Waits for the lock at `path`, and calls `waiting` now and then while somebody holds it. `None`
/// where the file system has no locks.
pub(crate) async fn acquire(path: &Path, waiting: impl Fn()) -> std::io::Result<Option<Lock>> {
    let file = File::options().create(true).truncate(false).write(true).open(path)?;
    let mut told = None::<Instant>;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(Lock { _file: file })),
            Err(Errno::WOULDBLOCK) => {
                if told.is_none_or(|last| last.elapsed() >= TELLING) {
                    told = Some(Instant::now());
                    waiting();
                }
                tokio::time::sleep(INTERVAL).await;
            }
            Err(Errno::INTR) => {}
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "this file system has no locks");
                return Ok(None);
            }
        }
    }
}
