//! Copies of weights as loads have left them: each is known by the record of its load and removed by it. What no
//! record names is somebody else's and stays, wherever it lies.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use super::destination::OURS;
pub(crate) use super::destination::is_in_memory;
use super::record::{self, Record};
use super::{lock, part};

/// Whether a load has put its copy into `folder`, or begun to.
pub(crate) fn is_copy(folder: &Path) -> bool {
    let ours = folder.join(OURS);
    let is = |name: &str| fs::symlink_metadata(ours.join(name)).is_ok_and(|found| found.is_file());
    fs::symlink_metadata(&ours).is_ok_and(|found| found.is_dir())
        && (is(record::NAME) || is(lock::LOCK))
}

/// The folders with copies at and below `folder`, but not at or below `stays`. Links are not followed.
pub(crate) fn below(folder: &Path, stays: Option<&Path>) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = open.pop() {
        if stays.is_some_and(|stays| folder.starts_with(stays)) {
            continue;
        }
        if is_copy(&folder) {
            found.push(folder.clone());
        }
        open.extend(entries(&folder).filter(is_folder).map(|entry| entry.path()));
    }
    found
}

/// Removes the copy in `folder`, and that if nothing else is in it. Nothing at or below `stays` is touched.
pub(crate) fn remove(folder: &Path, stays: Option<&Path>) -> io::Result<()> {
    empty(folder, stays)?;
    let ours = folder.join(OURS);
    gone(fs::remove_file(ours.join(lock::LOCK)))?;
    remove_if_empty(&ours)?;
    remove_if_empty(folder)
}

/// Removes all of a copy but its lock: the files of its record, what was half-written, the folders that are empty
/// then, and the record at last, so that a removing that is broken off is gone on with.
pub(super) fn empty(folder: &Path, stays: Option<&Path>) -> io::Result<()> {
    let ours = folder.join(OURS);
    let real = folder.canonicalize()?;
    let touched = |place: &Path| stays.is_none_or(|stays| !place.starts_with(stays));
    // Whether a folder of the copy is what it seems, with no link on the way.
    let mut within = BTreeMap::from([(folder.to_path_buf(), true)]);
    for file in Record::at(ours.join(record::NAME)).read() {
        let place = file.below(folder);
        let Some(parent) = place.parent().filter(|parent| touched(parent)) else { continue };
        let seems = parent.strip_prefix(folder).map_or_else(|_| real.clone(), |way| real.join(way));
        let is_within = within
            .entry(parent.to_path_buf())
            .or_insert_with(|| parent.canonicalize().is_ok_and(|parent| parent == seems));
        if *is_within && fs::symlink_metadata(&place).is_ok_and(|found| found.is_file()) {
            gone(fs::remove_file(&place))?;
        }
    }
    let parents = within.into_iter().filter_map(|(folder, within)| within.then_some(folder));
    let parents = parents.flat_map(|parent| up_to(&parent, folder)).collect::<BTreeSet<_>>();
    // Those below come after those above.
    for parent in parents.iter().rev() {
        remove_parts(parent)?;
        if parent != folder {
            remove_if_empty(parent)?;
        }
    }
    remove_parts(&ours)?;
    gone(fs::remove_file(ours.join(record::NAME)))
}

/// What is gone already is well: another load may do the same where there are no locks.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Removes `folder` if there is nothing in it but folders, and those too.
pub(crate) fn remove_empty(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        // What is no folder is not removed, and says so itself.
        remove_empty(&entry?.path())?;
    }
    fs::remove_dir(folder)
}

/// `folder` and the folders above it, up to `top`.
fn up_to(folder: &Path, top: &Path) -> Vec<PathBuf> {
    let below = folder.ancestors().take_while(|above| above.starts_with(top));
    below.map(Path::to_path_buf).collect()
}

fn remove_parts(folder: &Path) -> io::Result<()> {
    let left = |entry: &DirEntry| {
        let name = entry.file_name();
        name.to_str().is_some_and(|name| name.ends_with(part::SUFFIX))
            && entry.file_type().is_ok_and(|kind| kind.is_file())
    };
    entries(folder).filter(left).try_for_each(|part| gone(fs::remove_file(part.path())))
}

/// What has something in it, or is mounted, stays.
fn remove_if_empty(folder: &Path) -> io::Result<()> {
    use io::ErrorKind::{DirectoryNotEmpty, NotFound, ResourceBusy};
    match fs::remove_dir(folder) {
        Err(error) if [DirectoryNotEmpty, NotFound, ResourceBusy].contains(&error.kind()) => Ok(()),
        removed => removed,
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

fn is_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on shall fail where it stands")]
mod tests {
    use std::os::unix::fs::symlink;

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

    #[test]
    fn a_copy_goes_as_it_was_recorded_and_what_is_somebody_elses_stays() {
        let top = tempfile::tempdir().unwrap();
        let copy = top.path().join("copy");
        write(&copy, &["a", "sub/deep/b", "sub/theirs", "half/.1-1-1.flash-tmp", "half/c"]);
        record(&copy, r#"["a", "sub/deep/b", "half/c", "../outside", "never/came"]"#);
        write(top.path(), &["outside"]);
        remove(&copy, None).unwrap();
        assert!(copy.join("sub/theirs").exists() && top.path().join("outside").exists());
        assert_eq!(fs::read_dir(&copy).unwrap().count(), 1, "all else of the copy is gone");
        assert_eq!(fs::read_dir(copy.join("sub")).unwrap().count(), 1);
        fs::remove_file(copy.join("sub/theirs")).unwrap();
        fs::remove_dir(copy.join("sub")).unwrap();
        write(&copy, &["a"]);
        record(&copy, r#"["a"]"#);
        remove(&copy, None).unwrap();
        assert!(!copy.exists());
    }

    #[test]
    fn nothing_is_removed_through_a_link() {
        let (top, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write(other.path(), &["passwd", "copy/a"]);
        record(&other.path().join("copy"), r#"["a"]"#);
        symlink(other.path(), top.path().join("link")).unwrap();
        record(top.path(), r#"["link/passwd"]"#);
        assert_eq!(below(top.path(), None), [top.path()]);
        remove(top.path(), None).unwrap();
        assert!(other.path().join("passwd").exists() && top.path().join("link").exists());
    }

    #[test]
    fn only_folders_without_files_count_as_empty() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(top.path().join("a/b/c")).unwrap();
        remove_empty(&top.path().join("a")).unwrap();
        write(top.path(), &["a/b/theirs"]);
        remove_empty(&top.path().join("a")).unwrap_err();
        assert!(top.path().join("a/b/theirs").exists() && !top.path().join("a/b/c").exists());
    }
}
