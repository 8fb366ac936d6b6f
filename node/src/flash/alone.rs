//! What earlier loads of other weights have left beside the destination, in a folder that is to hold one copy: memory
//! that nobody would ever free.

use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::destination::OURS;
use super::error::FlashError;
use super::lock::{self, LOCK, Lock};

/// Removes everything in `top` that is not on the way to `destination`, once no other load is at work there, and keeps
/// others from that until what it gives is dropped; nothing where the file system has no locks, or where the lock on
/// the destination does that.
pub(super) fn enter(
    top: &Path,
    destination: &Path,
    stopped: &AtomicBool,
) -> Result<Option<Lock>, FlashError> {
    let Ok(way) = destination.strip_prefix(top) else {
        let why =
            "is not in the folder of --alone-in (FLASH_ALONE_IN), so that nothing there is removed";
        return Err(FlashError::BadEntry { path: destination.to_path_buf(), why });
    };
    if way.as_os_str().is_empty() {
        return Ok(None);
    }
    let ours = top.join(OURS);
    fs::create_dir_all(&ours).map_err(|error| FlashError::writing(&ours, error))?;
    let lock = lock::acquire(&ours.join(LOCK), stopped)?;
    clear(top, way)?;
    Ok(lock)
}

/// Removes everything in `top` but the lock and what is on the `way`.
fn clear(top: &Path, way: &Path) -> Result<(), FlashError> {
    remove_all_but(&top.join(OURS), &[LOCK.as_ref()])?;
    let mut folder = top.to_path_buf();
    for name in way {
        let ours = (folder == top).then_some(OsStr::new(OURS));
        let kept: Vec<&OsStr> = [name].into_iter().chain(ours).collect();
        remove_all_but(&folder, &kept)?;
        folder.push(name);
    }
    Ok(())
}

fn remove_all_but(folder: &Path, kept: &[&OsStr]) -> Result<(), FlashError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(FlashError::writing(folder, error)),
    };
    for entry in entries.flatten().filter(|entry| !kept.contains(&&*entry.file_name())) {
        match remove(&entry) {
            // Another load may do the same where there are no locks.
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(FlashError::writing(&entry.path(), error));
            }
            _ => {}
        }
        tracing::info!(path = %entry.path().display(), "removed: no weights of this model any more");
    }
    Ok(())
}

/// Links are not followed.
fn remove(entry: &DirEntry) -> io::Result<()> {
    let path = entry.path();
    if entry.file_type()?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on shall fail where it stands")]
mod tests {
    use super::*;

    /// Enters as a load does that waits for nobody.
    fn enters(top: &Path, destination: &Path) -> Result<Option<Lock>, FlashError> {
        enter(top, destination, &AtomicBool::new(true))
    }

    fn write(top: &Path, name: &str) {
        let file = top.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "weights").unwrap();
    }

    #[test]
    fn only_what_is_not_on_the_way_goes() {
        let (top, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (top, elsewhere) = (top.path(), elsewhere.path());
        let names =
            ["hub/org/new/main/a", "hub/org/old/main/a", "oci/b", "hub/c", ".flash/files.json"];
        for name in names {
            write(top, name);
        }
        fs::write(elsewhere.join("d"), "theirs").unwrap();
        std::os::unix::fs::symlink(elsewhere, top.join("link")).unwrap();
        assert!(enters(top, &top.join("hub/org/new")).unwrap().is_some());
        let left = names.map(|name| top.join(name).exists());
        assert_eq!(left, [true, false, false, false, false]);
        assert!(!top.join("link").exists() && elsewhere.join("d").exists());
        enters(top, &top.join("not/yet/there")).unwrap();
        let left: Vec<_> =
            fs::read_dir(top).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [OURS], "the lock stays");
        assert!(enters(top, top).unwrap().is_none());
        enters(elsewhere, top).unwrap_err();
        assert!(elsewhere.join("d").exists() && !elsewhere.join(OURS).exists());
    }

    #[test]
    fn what_another_load_is_at_work_on_is_left_alone_until_that_has_ended() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path();
        let other = enters(top, &top.join("old")).unwrap();
        write(top, "old/model.bin");
        for destination in ["new", "old"] {
            let entered = enters(top, &top.join(destination));
            assert!(matches!(entered, Err(FlashError::Stopped)), "it does not wait");
            assert!(top.join("old/model.bin").exists(), "{destination}");
        }
        drop(other);
        enters(top, &top.join("new")).unwrap();
        assert!(!top.join("old").exists());
    }
}
