//! What earlier loads of other weights have left beside the destination, in a folder that is to hold one copy: memory
//! that nobody would ever free. What no load has put there is told of and stays.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::copies;
use super::destination::OURS;
use super::error::FlashError;
use super::lock::{self, LOCK, Lock};

/// Removes the copies in `top` that are not on the way to `destination`, once no other load is at work there, and keeps
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

/// Removes the copies in `top` that do not lie on the `way`, but for the lock, and folders that are empty.
fn clear(top: &Path, way: &Path) -> Result<(), FlashError> {
    let destination = top.join(way);
    for copy in copies::below(top, Some(&destination)) {
        let removed = if copy == top {
            copies::empty(&copy, Some(&destination))
        } else {
            copies::remove(&copy, Some(&destination))
        };
        removed.map_err(|error| FlashError::writing(&copy, error))?;
        tracing::info!(path = %copy.display(), "removed: no weights of this model any more");
    }
    let mut folder = top.to_path_buf();
    for name in way {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, kept) = (entry.path(), [name, OURS.as_ref()]);
            if !kept.contains(&&*entry.file_name()) && copies::remove_empty(&path).is_err() {
                tracing::warn!(path = %path.display(), "left: no load has put it there");
            }
        }
        folder.push(name);
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on shall fail where it stands")]
mod tests {
    use super::*;

    /// Enters as a load does that waits for nobody.
    fn enters(top: &Path, destination: &Path) -> Result<Option<Lock>, FlashError> {
        enter(top, destination, &AtomicBool::new(true))
    }

    fn write(file: &Path, content: &str) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }

    /// A copy of one file, as a load leaves it.
    fn copied(folder: &Path) {
        write(&folder.join("main/a"), "weights");
        write(&folder.join(".flash/files.json"), r#"["main/a"]"#);
    }

    #[test]
    fn only_copies_that_are_not_on_the_way_go() {
        let (top, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (top, elsewhere) = (top.path(), elsewhere.path());
        let copies = ["hub/org/new", "hub/org/old", "oci", "."];
        for copy in copies {
            copied(&top.join(copy));
        }
        write(&top.join("theirs/b"), "not ours");
        fs::create_dir_all(top.join("hub/empty/folder")).unwrap();
        fs::write(elsewhere.join("d"), "theirs").unwrap();
        std::os::unix::fs::symlink(elsewhere, top.join("link")).unwrap();
        assert!(enters(top, &top.join("hub/org/new")).unwrap().is_some());
        let left = copies.map(|copy| top.join(copy).join("main/a").exists());
        assert_eq!(left, [true, false, false, false]);
        assert!(!top.join("oci").exists() && !top.join("hub/empty").exists());
        assert!(top.join("theirs/b").exists() && elsewhere.join("d").exists());
        enters(top, &top.join("not/yet/there")).unwrap();
        assert!(!top.join("hub").exists() && top.join("theirs/b").exists());
        assert!(top.join(OURS).join(LOCK).exists(), "the lock stays");
        assert!(enters(top, top).unwrap().is_none());
        enters(elsewhere, top).unwrap_err();
        assert!(elsewhere.join("d").exists() && !elsewhere.join(OURS).exists());
    }

    #[test]
    fn what_another_load_is_at_work_on_is_left_alone_until_that_has_ended() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path();
        let other = enters(top, &top.join("old")).unwrap();
        copied(&top.join("old"));
        for destination in ["new", "old"] {
            let entered = enters(top, &top.join(destination));
            assert!(matches!(entered, Err(FlashError::Stopped)), "it does not wait");
            assert!(top.join("old/main/a").exists(), "{destination}");
        }
        drop(other);
        enters(top, &top.join("new")).unwrap();
        assert!(!top.join("old").exists());
    }
}
