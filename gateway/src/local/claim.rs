//! One gateway per folder: a second one would start every engine a second time and write the same
//! files. A claim ends with its process, however that ends.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// How often the list of locks is read for a lock that must be in it.
const READINGS: usize = 20;

/// A folder that no other gateway may use while this lives.
#[derive(Debug)]
pub struct Claim {
    locked: File,
}

impl Drop for Claim {
    /// Closing the file is not enough: a process that is being started holds a copy of every open
    /// file until its program runs, and with it the lock.
    fn drop(&mut self) {
        if let Err(error) = self.locked.unlock() {
            tracing::debug!(%error, "a claimed folder is let go when its file closes");
        }
    }
}

/// Why a folder cannot be claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// Another gateway uses it.
    #[error(
        "{folder} is in use by another gateway{holder}; stop that one, or name another folder",
        folder = folder.display()
    )]
    Taken {
        /// The folder.
        folder: PathBuf,
        /// ` (process 123)` where that can be found out, else nothing.
        holder: String,
    },
    /// It is not there, or may not be opened.
    #[error("cannot open the folder {folder}", folder = folder.display())]
    Unopened {
        /// The folder.
        folder: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl Claim {
    /// Claims `folder`. The folder itself is locked, so that nothing is written into it: it may be
    /// read-only, or belong to a repository.
    pub fn on(folder: &Path) -> Result<Self, ClaimError> {
        let unopened = |source| ClaimError::Unopened { folder: folder.to_path_buf(), source };
        let opened = File::open(folder).map_err(unopened)?;
        match opened.try_lock() {
            Ok(()) => Ok(Self { locked: opened }),
            Err(TryLockError::WouldBlock) => {
                let holder = holder(&opened)
                    .map_or_else(String::new, |process| format!(" (process {process})"));
                Err(ClaimError::Taken { folder: folder.to_path_buf(), holder })
            }
            Err(TryLockError::Error(error)) => Err(unopened(error)),
        }
    }
}

/// The process that holds the lock on `opened`, by Linux's list of all locks.
///
/// The list is handed out in pieces, and loses lines where locks come and go between two of them:
/// a lock that is not in it is looked for again.
fn holder(opened: &File) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;

    let inode = format!(":{}", opened.metadata().ok()?.ino());
    (0..READINGS).find_map(|_| {
        let locks = fs::read_to_string("/proc/locks").ok()?;
        locks.lines().find_map(|line| holder_in(line, &inode))
    })
}

/// Reads `1: FLOCK  ADVISORY  WRITE 4711 08:01:123456 0 EOF`.
fn holder_in(line: &str, inode: &str) -> Option<u32> {
    let mut fields = line.split_ascii_whitespace().skip_while(|field| *field != "FLOCK").skip(3);
    let process = fields.next()?.parse().ok()?;
    fields.next()?.ends_with(inode).then_some(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claimed_folder_is_refused_until_it_is_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let claim = Claim::on(folder.path()).unwrap();
        let refused = Claim::on(folder.path()).unwrap_err();
        assert!(refused.to_string().contains("in use by another gateway"), "{refused}");
        if cfg!(target_os = "linux") {
            let process = format!("(process {})", std::process::id());
            assert!(refused.to_string().contains(&process), "{refused}");
        }
        drop(claim);
        Claim::on(folder.path()).unwrap();
    }

    #[test]
    fn a_folder_that_is_missing_is_named() {
        let refused = Claim::on(Path::new("/no/such/folder")).unwrap_err();
        assert!(refused.to_string().contains("/no/such/folder"));
    }

    #[test]
    fn only_whole_locks_of_that_file_count() {
        let line = "3: FLOCK  ADVISORY  WRITE 4711 08:01:77 0 EOF";
        assert_eq!(holder_in(line, ":77"), Some(4711));
        assert_eq!(holder_in(line, ":7"), None);
        assert_eq!(holder_in("4: POSIX  ADVISORY  WRITE 4711 08:01:77 0 EOF", ":77"), None);
    }
}
