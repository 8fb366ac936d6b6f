//! What earlier loads of other weights have left beside the destination, in a folder that is to hold one copy: memory
//! that nobody would ever free.

use std::fs::{self, DirEntry};
use std::io;
use std::path::Path;

use super::error::FlashError;

/// Removes everything in `top` that is not on the way to `destination`.
pub(super) fn clear(top: &Path, destination: &Path) -> Result<(), FlashError> {
    let Ok(way) = destination.strip_prefix(top) else {
        let why =
            "is not in the folder of --alone-in (FLASH_ALONE_IN), so that nothing there is removed";
        return Err(FlashError::BadEntry { path: destination.to_path_buf(), why });
    };
    let mut folder = top.to_path_buf();
    for name in way {
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(FlashError::writing(&folder, error)),
        };
        for entry in entries.flatten().filter(|entry| entry.file_name() != name) {
            remove(&entry).map_err(|error| FlashError::writing(&entry.path(), error))?;
            tracing::info!(path = %entry.path().display(), "removed: no weights of this model any more");
        }
        folder.push(name);
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

    #[test]
    fn only_what_is_not_on_the_way_goes() {
        let top = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let file = top.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "weights").unwrap();
        };
        let names = ["hub/org/new/main/a", "hub/org/old/main/a", "oci/b", "hub/c"];
        for name in names {
            write(name);
        }
        fs::write(elsewhere.path().join("d"), "theirs").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), top.path().join("link")).unwrap();
        clear(top.path(), &top.path().join("hub/org/new")).unwrap();
        let left = names.map(|name| top.path().join(name).exists());
        assert_eq!(left, [true, false, false, false]);
        assert!(!top.path().join("link").exists() && elsewhere.path().join("d").exists());
        clear(top.path(), &top.path().join("not/yet/there")).unwrap();
        assert_eq!(fs::read_dir(top.path()).unwrap().count(), 0);
        clear(top.path(), top.path()).unwrap();
        clear(elsewhere.path(), top.path()).unwrap_err();
        assert!(elsewhere.path().join("d").exists());
    }
}
