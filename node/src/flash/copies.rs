//! Copies of weights as loads have left them: each is known by the record of its load and removed by it. What no
//! record names is somebody else's and stays, wherever it lies. So does what lies behind a link, or on another file
//! system than the folder that is looked through.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

pub(crate) use super::destination::is_in_memory;
use super::lock::{self, Lock};
use super::own::{self, OURS, Own};
use super::part;
use super::record::{self, Record};
use crate::inside::{self, named};

/// Why a folder stays where it is. One that is mounted may be refused for what it lies in, before anything else.
const STAYS: [io::ErrorKind; 5] = [
    io::ErrorKind::DirectoryNotEmpty,
    io::ErrorKind::NotFound,
    io::ErrorKind::ResourceBusy,
    io::ErrorKind::ReadOnlyFilesystem,
    io::ErrorKind::PermissionDenied,
];

/// The copies at and below a folder.
pub(crate) struct Copies {
    top: File,
    path: PathBuf,
    device: u64,
}

impl Copies {
    /// Those at and below `real`, a place as it is behind all links.
    pub(crate) fn at(real: &Path) -> io::Result<Self> {
        Self::of(inside::real(real)?, real)
    }

    /// Those at and below the open folder `top`, which is at `path`.
    pub(crate) fn of(top: File, path: &Path) -> io::Result<Self> {
        Ok(Self { device: inside::device(&top)?, top, path: path.to_path_buf() })
    }

    /// Whether nothing outlives a power cut there.
    pub(crate) fn are_in_memory(&self) -> io::Result<bool> {
        is_in_memory(&self.top)
    }

    /// Whether a load has put a copy at `way`, or begun to, or has had that folder for its copies alone.
    pub(crate) fn is_at(&self, way: &Path) -> bool {
        [record::NAME, lock::LOCK, own::ALONE].iter().any(|name| self.has(way, name))
    }

    /// Whether the copy at `way` has a record: files that are known to be its.
    pub(crate) fn is_recorded(&self, way: &Path) -> bool {
        self.has(way, record::NAME)
    }

    /// What goes with the copy in the folder itself: that copy, and those below where a load was given the folder for
    /// its copy alone. A lock by itself says nothing of others: each load that fails leaves one.
    pub(crate) fn with_itself(&self) -> Vec<PathBuf> {
        let itself = PathBuf::new();
        let for_others = !self.is_recorded(&itself) && self.has(&itself, own::ALONE);
        if for_others { self.find(None) } else { vec![itself] }
    }

    fn has(&self, way: &Path, name: &str) -> bool {
        let own = self.folder(way).and_then(|folder| Own::of(&folder, Path::new("")));
        own.and_then(|own| inside::file(&own.folder, OsStr::new(name))).is_ok()
    }

    /// The ways to all copies, those above first, but for those at or below `stays`.
    pub(crate) fn find(&self, stays: Option<&Path>) -> Vec<PathBuf> {
        let (mut found, mut open) = (Vec::new(), vec![PathBuf::new()]);
        while let Some(way) = open.pop() {
            let Ok(folder) = self.folder(&way) else { continue };
            if stays.is_some_and(|stays| way.starts_with(stays)) {
                continue;
            }
            if self.is_at(&way) {
                found.push(way.clone());
            }
            let entries = inside::entries(&folder).unwrap_or_default().into_iter();
            let folders = entries.filter(|(_, kind)| *kind == FileType::Directory);
            open.extend(folders.map(|(name, _)| way.join(name)));
        }
        found
    }

    /// Removes the copy at `way`, and its folder if nothing else is in it. Nothing at or below `stays` is touched.
    pub(crate) fn remove(&self, way: &Path, stays: Option<&Path>) -> io::Result<()> {
        let (folder, path) = (self.folder(way)?, self.path.join(way));
        let own = Own::of(&folder, &path)?;
        // Kept until all is gone: whoever waits for it finds that it is not in its place any more.
        let lock = locked(&own)?;
        self.empty(way, stays)?;
        if self.is_recorded(way) {
            return Ok(());
        }
        for name in [own::ALONE, lock::LOCK] {
            inside::remove_file(&own.folder, OsStr::new(name)).map_err(named(&own.path))?;
        }
        // NFS keeps a file that somebody has open under another name, and its folder is not empty until that ends.
        drop(lock);
        inside::remove_if_empty(&folder, OsStr::new(OURS)).map_err(named(&own.path))?;
        self.remove_if_empty(way)
    }

    /// Removes all that is in the folder, whoever put it there, unless a load is at work in it. Each copy's lock goes when
    /// nothing else of it is left.
    pub(crate) fn remove_all(&self) -> io::Result<()> {
        // A load that comes to the folder itself finds its lock taken. Where none can be, none can work there.
        let own = Own::make(&self.top, &self.path).ok();
        let mut locks = own.as_ref().map(locked).into_iter().collect::<io::Result<Vec<_>>>()?;
        for copy in self.find(None).iter().filter(|copy| !copy.as_os_str().is_empty()) {
            locks.push(locked(&Own::of(&self.folder(copy)?, &self.path.join(copy))?)?);
        }
        let removed = inside::remove_content(&self.top, &self.path, &[OURS, lock::LOCK]);
        drop(locks);
        match removed {
            // What NFS keeps of a file that was open is gone only now.
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            removed => removed,
        }
    }

    /// Removes all of a copy but its lock: the files of its record, what was half-written, the folders that are empty
    /// then, and the record at last, so that a removing that is broken off is gone on with. What is on another file system
    /// is left, and stays in the record.
    pub(super) fn empty(&self, way: &Path, stays: Option<&Path>) -> io::Result<()> {
        let (folder, path) = (self.folder(way)?, self.path.join(way));
        let own = Own::of(&folder, &path)?;
        let record = Record { top: &folder, own: &own };
        let place = own.path.join(record::NAME);
        let mut folders = BTreeSet::from([way.to_path_buf()]);
        // The folder of the file before: the next one most often lies in it too.
        let mut last = None::<(PathBuf, io::Result<File>)>;
        let mut left = Vec::new();
        for file in record.known().map_err(named(&place))? {
            let (below, name) = inside::split(&file);
            let parent = way.join(below);
            if stays.is_some_and(|stays| parent.starts_with(stays)) {
                continue;
            }
            if last.as_ref().is_none_or(|(last, _)| *last != parent) {
                let open = self.folder(&parent);
                if open.is_ok() {
                    folders.extend(up_to(&parent, way));
                }
                last = Some((parent, open));
            }
            match &last {
                Some((_, Ok(open))) => {
                    inside::remove_file(open, name).map_err(named(&file.below(&path)))?;
                }
                Some((_, Err(error))) if error.kind() == io::ErrorKind::CrossesDevices => {
                    left.push(file);
                }
                // What was a folder of the copy's is none any more.
                _ => {}
            }
        }
        // Those below come after those above.
        for folder in folders.iter().rev() {
            self.remove_parts(folder)?;
            if folder != way {
                self.remove_if_empty(folder)?;
            }
        }
        self.remove_parts(&way.join(OURS))?;
        if let Some(first) = left.first() {
            let first = first.below(&path);
            tracing::warn!(path = %first.display(), files = left.len(), "left: on another file system than the rest of the copy");
            return record.write(left.iter(), !self.are_in_memory()?).map_err(io::Error::other);
        }
        inside::remove_file(&own.folder, OsStr::new(record::NAME)).map_err(named(&place))?;
        Ok(())
    }

    /// Removes the folder at `way` if nothing is in it.
    pub(crate) fn remove_if_empty(&self, way: &Path) -> io::Result<()> {
        let named = named(&self.path.join(way));
        if let (Some(parent), Some(name)) = (way.parent(), way.file_name()) {
            let parent = self.folder(parent)?;
            return inside::remove_if_empty(&parent, name).map_err(named);
        }
        match fs::remove_dir(&self.path) {
            Err(error) if !STAYS.contains(&error.kind()) => Err(named(error)),
            _ => Ok(()),
        }
    }

    /// Removes the folders on the way to a copy that are empty without it; that of all copies stays.
    pub(crate) fn remove_above(&self, copy: &Path) -> io::Result<()> {
        let above = copy.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        above.into_iter().try_for_each(|above| self.remove_if_empty(above))
    }

    fn remove_parts(&self, way: &Path) -> io::Result<()> {
        let Ok(folder) = self.folder(way) else { return Ok(()) };
        let path = self.path.join(way);
        let entries = inside::entries(&folder).map_err(named(&path))?;
        let is_part = |name: &OsStr| name.to_str().is_some_and(|name| name.ends_with(part::SUFFIX));
        for (name, _) in entries.iter().filter(|(name, _)| is_part(name)) {
            inside::remove_file(&folder, name).map_err(named(&path.join(name)))?;
        }
        Ok(())
    }

    /// The folder at `way`, if it is on the same file system.
    fn folder(&self, way: &Path) -> io::Result<File> {
        let folder = inside::folder(&self.top, way).map_err(named(&self.path.join(way)))?;
        if inside::device(&folder)? == self.device {
            Ok(folder)
        } else {
            Err(io::ErrorKind::CrossesDevices.into())
        }
    }
}

/// The lock on the copy of `own`, if no load is at work there; nothing where the file system has no locks.
fn locked(own: &Own) -> io::Result<Option<Lock>> {
    let lock = lock::attempt(own).map_err(|error| match error.kind() {
        kind @ io::ErrorKind::WouldBlock => io::Error::new(kind, "a load is at work there"),
        _ => error,
    });
    lock.map_err(named(&own.path.join(lock::LOCK)))
}

/// `folder` and the folders above it, up to `top`.
fn up_to(folder: &Path, top: &Path) -> Vec<PathBuf> {
    let below = folder.ancestors().take_while(|above| above.starts_with(top));
    below.map(Path::to_path_buf).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on shall fail where it stands")]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    fn write(top: &Path, names: &[&str]) {
        for name in names {
            let file = top.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "weights").unwrap();
        }
    }

    /// As a load leaves it that has put these files there.
    fn record(folder: &Path, files: &str) {
        write(folder, &[".flash/lock"]);
        fs::write(folder.join(".flash/files.json"), files).unwrap();
    }

    fn remove(folder: &Path) -> io::Result<()> {
        Copies::at(folder).unwrap().remove(Path::new(""), None)
    }

    #[test]
    fn a_copy_goes_as_it_was_recorded_and_what_is_somebody_elses_stays() {
        let top = tempfile::tempdir().unwrap();
        let copy = top.path().join("copy");
        write(&copy, &["a", "sub/deep/b", "sub/theirs", "half/.1-1-1.flash-tmp", "half/c"]);
        record(&copy, r#"["a", "sub/deep/b", "half/c", "../outside", "never/came"]"#);
        write(top.path(), &["outside"]);
        remove(&copy).unwrap();
        assert!(copy.join("sub/theirs").exists() && top.path().join("outside").exists());
        assert_eq!(fs::read_dir(&copy).unwrap().count(), 1, "all else of the copy is gone");
        assert_eq!(fs::read_dir(copy.join("sub")).unwrap().count(), 1);
        fs::remove_file(copy.join("sub/theirs")).unwrap();
        fs::remove_dir(copy.join("sub")).unwrap();
        write(&copy, &["a"]);
        record(&copy, r#"["a"]"#);
        remove(&copy).unwrap();
        assert!(!copy.exists());
    }

    #[test]
    fn nothing_is_removed_through_a_link() {
        let (top, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write(other.path(), &["passwd", "copy/a", "lock", "files.json"]);
        record(&other.path().join("copy"), r#"["a"]"#);
        symlink(other.path(), top.path().join("link")).unwrap();
        record(top.path(), r#"["link/passwd"]"#);
        assert_eq!(Copies::at(top.path()).unwrap().find(None), [Path::new("")]);
        remove(top.path()).unwrap();
        assert!(other.path().join("passwd").exists() && top.path().join("link").exists());
        symlink(other.path(), top.path().join(".flash")).unwrap();
        assert!(!Copies::at(top.path()).unwrap().is_at(Path::new("")), "a link is none of ours");
        remove(top.path()).unwrap_err();
        assert!(other.path().join("files.json").exists());
    }

    #[test]
    fn a_record_that_cannot_be_read_is_kept_and_named() {
        let top = tempfile::tempdir().unwrap();
        write(top.path(), &["a"]);
        record(top.path(), "half of it");
        let said = remove(top.path()).unwrap_err().to_string();
        assert!(said.contains(".flash/files.json"), "{said}");
        assert!(top.path().join(".flash/files.json").exists() && top.path().join("a").exists());
    }

    #[test]
    fn a_copy_that_a_load_is_at_work_on_stays() {
        let top = tempfile::tempdir().unwrap();
        write(top.path(), &["a"]);
        record(top.path(), r#"["a"]"#);
        let own = Own::of(&inside::top(top.path()).unwrap(), top.path()).unwrap();
        let lock = lock::attempt(&own).unwrap();
        let said = remove(top.path()).unwrap_err().to_string();
        assert!(said.contains("a load is at work there"), "{said}");
        assert!(top.path().join("a").exists());
        drop(lock);
        remove(top.path()).unwrap();
        assert!(!top.path().exists());
    }

    #[test]
    fn root_removes_nothing_of_a_third_one_by_somebodys_record() {
        let top = tempfile::tempdir().unwrap();
        write(top.path(), &["forgers", "theirs"]);
        record(top.path(), r#"["forgers", "theirs"]"#);
        for name in ["forgers", ".flash/files.json"] {
            if chown(top.path().join(name), Some(1000), None).is_err() {
                // Only root can make them somebody else's, and only root is asked.
                println!("not tested: only root can make a file somebody else's");
                return;
            }
        }
        remove(top.path()).unwrap();
        assert!(top.path().join("theirs").exists() && !top.path().join("forgers").exists());
    }
}
