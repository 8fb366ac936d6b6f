//! What earlier loads of other weights have left beside the destination, in a folder that is to hold one copy: memory
//! that nobody would ever free. What no load has put there is told of and stays.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::copies::Copies;
use super::error::FlashError;
use super::lock::{self, Lock};
use super::making::{self, NoFolder};
use super::own::{OURS, Own};
use super::place;
use crate::inside::{self, OF_FILE_SYSTEM};

/// A folder that is to hold one copy.
pub(super) struct Alone {
    top: PathBuf,
    /// Where in it.
    way: PathBuf,
}

impl Alone {
    /// The folder `top`, in which `destination` is; both as they are behind all links.
    pub(super) fn of(top: &Path, destination: &Path, source: &Path) -> Result<Self, FlashError> {
        let (top, path) = (place::checked(top)?, place::checked(destination)?);
        let Ok(way) = path.strip_prefix(&top) else {
            let why = "it is not in the folder of --alone-in (FLASH_ALONE_IN)";
            return Err(FlashError::Misplaced { path: destination.to_path_buf(), why });
        };
        // An older copy may be what this one is to be copied from.
        if source.canonicalize().is_ok_and(|source| source.starts_with(&top)) {
            let why = "it is in the folder of --alone-in (FLASH_ALONE_IN), which is to hold nothing but the copy";
            return Err(FlashError::Misplaced { path: source.to_path_buf(), why });
        }
        let way = way.to_path_buf();
        Ok(Self { top, way })
    }

    /// Removes the copies that are not on the way to the destination, once no other load is at work in the folder, and
    /// keeps others from that until the lock is dropped; nothing where the file system has no locks, or where the
    /// lock on the destination does that.
    pub(super) fn enter(&self, stopped: &AtomicBool) -> Result<(File, Option<Lock>), FlashError> {
        let Self { top, way } = self;
        let folder = making::folder_at(top)?;
        if way.as_os_str().is_empty() {
            return Ok((folder, None));
        }
        let own = Own::make(&folder, top)?;
        let lock = lock::acquire(&own, stopped)?;
        own.mark_alone().map_err(|error| FlashError::writing(&own.path, error))?;
        self.clear(&folder, stopped)?;
        Ok((folder, lock))
    }

    /// The folder of the destination in `entered`, made if it is not there. It is in no other, whatever
    /// has come on the way meanwhile.
    pub(super) fn destination(&self, entered: &File) -> Result<File, FlashError> {
        let made = making::below(entered, &self.way, NoFolder::Goes);
        made.map_err(|error| FlashError::writing(&self.top.join(&self.way), error))
    }

    /// Removes the copies below the destination where that is the folder itself, whose lock is held.
    pub(super) fn clear_below(
        &self,
        folder: &File,
        stopped: &AtomicBool,
    ) -> Result<(), FlashError> {
        if !self.way.as_os_str().is_empty() {
            return Ok(());
        }
        let writing = |error| FlashError::writing(&self.top, error);
        let copies = folder.try_clone().and_then(|folder| Copies::of(folder, &self.top));
        let copies = copies.map_err(writing)?;
        for copy in copies.find(None).iter().filter(|copy| **copy != self.way).rev() {
            self.cleared(&copies, copy, stopped, || {
                copies.remove(copy, None).and_then(|()| copies.remove_above(copy))
            })?;
        }
        Ok(())
    }

    /// Removes the copies that do not lie on the way, but for the lock, and folders that are empty.
    fn clear(&self, open: &File, stopped: &AtomicBool) -> Result<(), FlashError> {
        let Self { top, way } = self;
        let writing = |error| FlashError::writing(top, error);
        let copies = open.try_clone().and_then(|open| Copies::of(open, top)).map_err(writing)?;
        for copy in copies.find(Some(way)) {
            self.cleared(&copies, &copy, stopped, || {
                if copy.as_os_str().is_empty() {
                    copies.empty(&copy, Some(way))
                } else {
                    copies.remove(&copy, Some(way))
                }
            })?;
        }
        let mut above = PathBuf::new();
        for name in way {
            // A folder that is not there yet has nothing in it.
            let Ok(folder) = inside::folder(open, &above) else { break };
            for (entry, _) in inside::entries(&folder).map_err(writing)? {
                let (path, kept) =
                    (top.join(&above).join(&entry), [name, OURS.as_ref(), OF_FILE_SYSTEM.as_ref()]);
                if !kept.contains(&&*entry) && inside::remove_empty(&folder, &entry, &path).is_err()
                {
                    tracing::warn!(path = %path.display(), "left: no load has put it there");
                }
            }
            above.push(name);
        }
        Ok(())
    }

    /// Clears a copy away by `remove`, once no other load is at work on it. What cannot be removed is in the way of
    /// nothing but room, and that is looked at later.
    fn cleared(
        &self,
        copies: &Copies,
        copy: &Path,
        stopped: &AtomicBool,
        mut remove: impl FnMut() -> io::Result<()>,
    ) -> Result<(), FlashError> {
        let path = self.top.join(copy);
        // A load that has failed early leaves a lock and no copy, and what is on another file system is told of.
        let is_gone = || {
            let was_there = copies.is_recorded(copy);
            remove().map(|()| was_there && !copies.is_recorded(copy))
        };
        match lock::wait(&path.join(OURS).join(lock::LOCK), stopped, is_gone) {
            // Somebody else has removed it.
            Err(FlashError::Write { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            Err(FlashError::Write { source, .. }) => {
                tracing::warn!(path = %path.display(), error = %source, "left: it cannot be removed");
            }
            is_gone => {
                if is_gone? {
                    tracing::info!(path = %path.display(), "removed: no weights of this model any more");
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on shall fail where it stands")]
mod tests {
    use std::fs;

    use super::*;
    use lock::LOCK;

    /// Enters as a load does that waits for nobody.
    fn enters(top: &Path, destination: &Path) -> Result<Option<Lock>, FlashError> {
        let entered =
            Alone::of(top, destination, Path::new("/none"))?.enter(&AtomicBool::new(true));
        entered.map(|(_, lock)| lock)
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
        fs::create_dir(elsewhere.join("empty")).unwrap();
        fs::create_dir(top.join("lost+found")).unwrap();
        std::os::unix::fs::symlink(elsewhere, top.join("link")).unwrap();
        assert!(enters(top, &top.join("hub/org/new")).unwrap().is_some());
        let left = copies.map(|copy| top.join(copy).join("main/a").exists());
        assert_eq!(left, [true, false, false, false]);
        assert!(!top.join("oci").exists() && !top.join("hub/empty").exists());
        assert!(top.join("theirs/b").exists() && elsewhere.join("d").exists());
        assert!(elsewhere.join("empty").exists(), "nothing goes behind a link");
        assert!(top.join("lost+found").exists());
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

    #[test]
    fn a_copy_that_cannot_be_removed_keeps_no_load_from_its_own() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path();
        for copy in ["new/garbled", "garbled", "old"] {
            copied(&top.join(copy));
        }
        for copy in ["new/garbled", "garbled"] {
            write(&top.join(copy).join(".flash/files.json"), "");
        }
        enters(top, &top.join("new")).unwrap();
        assert!(top.join("garbled/main/a").exists() && !top.join("old").exists());
        let new = Alone::of(&top.join("new"), &top.join("new"), Path::new("/none")).unwrap();
        let open = inside::top(&top.join("new")).unwrap();
        new.clear_below(&open, &AtomicBool::new(true)).unwrap();
        assert!(top.join("new/garbled/main/a").exists());
    }

    #[test]
    fn a_load_that_is_at_work_on_an_old_copy_is_waited_for() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path();
        copied(&top.join("old"));
        let old = inside::top(&top.join("old")).unwrap();
        let own = Own::of(&old, &top.join("old")).unwrap();
        let at_work = lock::attempt(&own).unwrap();
        let entered = enters(top, &top.join("new"));
        assert!(matches!(entered, Err(FlashError::Stopped)), "{entered:?}");
        assert!(top.join("old/main/a").exists());
        drop(at_work);
        enters(top, &top.join("new")).unwrap();
        assert!(!top.join("old").exists());
    }

    #[test]
    fn the_way_is_that_behind_links_and_dots() {
        let (top, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (top, elsewhere) = (top.path(), elsewhere.path());
        copied(&top.join("old"));
        std::os::unix::fs::symlink(elsewhere, top.join("link")).unwrap();
        let name = elsewhere.file_name().unwrap();
        for outside in [top.join("link/new"), top.join("..").join(name)] {
            assert!(matches!(enters(top, &outside), Err(FlashError::Misplaced { .. })));
            assert!(top.join("old/main/a").exists(), "{}", outside.display());
        }
        std::os::unix::fs::symlink(top, elsewhere.join("top")).unwrap();
        enters(&elsewhere.join("top"), &top.join("new")).unwrap();
        assert!(!top.join("old").exists());
    }

    #[test]
    fn what_is_copied_from_is_no_old_copy() {
        let top = tempfile::tempdir().unwrap();
        let (top, source) = (top.path(), top.path().join("old"));
        copied(&source);
        let alone = Alone::of(top, &top.join("new"), &source);
        assert!(matches!(alone, Err(FlashError::Misplaced { path, .. }) if path == source));
        assert!(source.join("main/a").exists());
    }

    #[test]
    fn copies_below_the_destination_go_as_well_where_that_is_the_folder() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path();
        copied(top);
        copied(&top.join("hub/old"));
        let (alone, open) = (Alone::of(top, top, Path::new("/none")), inside::top(top).unwrap());
        alone.unwrap().clear_below(&open, &AtomicBool::new(true)).unwrap();
        assert!(!top.join("hub").exists() && top.join("main/a").exists());
    }
}
