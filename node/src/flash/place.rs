//! Whether a destination may be copied to: it is no folder of the system's, and nothing of somebody else's lies where
//! a copy is to.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use flexinfer_core::loading::place::may_hold_copies;
use flexinfer_core::sources::RelativePath;

use super::destination::Destination;
use super::error::FlashError;
use super::folders::Folder;
use super::look::{Entry, Seen};
use super::part;
use super::record::{Known, Record};

/// Whether weights may be at `place`, as it is written and behind all links.
pub(crate) fn check(place: &Path) -> anyhow::Result<()> {
    checked(place)?;
    Ok(())
}

/// The same, for a load; gives where that is behind all links.
pub(super) fn checked(place: &Path) -> Result<PathBuf, FlashError> {
    let real = real(place).map_err(|error| FlashError::writing(place, error))?;
    let may = may_hold_copies(&real);
    may.map_err(|why| FlashError::NoPlace { path: place.to_path_buf(), why })?;
    Ok(real)
}

/// Where `place` is or will be: the folders that are there already are looked up behind their links.
fn real(place: &Path) -> io::Result<PathBuf> {
    let place = std::path::absolute(place)?;
    for there in place.ancestors() {
        if let Ok(real) = there.canonicalize() {
            let rest = place.strip_prefix(there).unwrap_or(Path::new(""));
            // An empty rest would add a slash.
            return Ok(if rest.as_os_str().is_empty() { real } else { real.join(rest) });
        }
    }
    Ok(place)
}

/// Whether `source` is not copied to itself: what was its own would be taken for a copy, and be removed as one.
pub(super) fn check_apart(source: &Path, destination: &Path) -> Result<(), FlashError> {
    let number = |path| fs::metadata(path).map(|found| (found.dev(), found.ino()));
    match (number(source), number(destination)) {
        (Ok(source), Ok(found)) if source == found => {
            let why = "it is the folder with the weights (FLASH_SRC) itself";
            Err(FlashError::Misplaced { path: destination.to_path_buf(), why })
        }
        _ => Ok(()),
    }
}

/// The same for each of the `folders` below: one of them may be mounted there.
pub(super) fn check_folders_apart(
    folders: &[Folder],
    destination: &Destination<'_>,
) -> Result<(), FlashError> {
    let copies = folders.iter().map(|folder| (&folder.real, folder.below(destination.path)));
    copies.into_iter().try_for_each(|(source, copy)| check_apart(source, &copy))
}

/// Whether each of `copies` finds its place in `folder` free, or held by what an earlier load has put there.
pub(super) fn check_theirs(
    folder: &Path,
    seen: &Seen,
    copies: &[&Entry],
    record: Record<'_>,
    known: &Known,
) -> Result<(), FlashError> {
    let theirs = |known: &Known| {
        let ours = known.files.iter().map(RelativePath::as_str).collect::<HashSet<_>>();
        let mut ways = copies.iter().filter_map(|entry| seen.folders.get(entry.place.folder));
        let mut paths = copies.iter().map(|entry| &entry.found.path);
        in_the_way(folder, &mut ways, &ours)
            .or_else(|| paths.find_map(|path| not_ours(&path.below(folder), path.as_str(), &ours)))
    };
    // A load beside this one may have put it there just now: its record is older than its files.
    match theirs(known).and_then(|_| theirs(&record.read())) {
        Some(path) if known.is_torn => Err(FlashError::Untold { path, record: record.path() }),
        Some(path) => Err(FlashError::Theirs { path }),
        None => Ok(()),
    }
}

/// What is in the place of a folder of copies and is none, nor one of `ours`.
fn in_the_way(
    top: &Path,
    folders: &mut dyn Iterator<Item = &Folder>,
    ours: &HashSet<&str>,
) -> Option<PathBuf> {
    let mut looked_at = HashSet::new();
    let mut ways = folders.flat_map(|folder| folder.way().ancestors());
    ways.find_map(|way| {
        if way.as_os_str().is_empty() || !looked_at.insert(way) {
            return None;
        }
        let place = top.join(way);
        let is_other = fs::symlink_metadata(&place).is_ok_and(|found| !found.is_dir());
        let is_ours = way.to_str().is_some_and(|way| ours.contains(way));
        (is_other && !is_ours).then_some(place)
    })
}

/// What at `place`, or below it, is none of `ours`.
fn not_ours(place: &Path, path: &str, ours: &HashSet<&str>) -> Option<PathBuf> {
    let found = fs::symlink_metadata(place).ok()?;
    if found.is_dir() {
        let mut entries = fs::read_dir(place).ok()?.flatten();
        return entries.find_map(|entry| {
            let path = format!("{path}/{}", entry.file_name().to_string_lossy());
            not_ours(&entry.path(), &path, ours)
        });
    }
    (!ours.contains(path) && !path.ends_with(part::SUFFIX)).then(|| place.to_path_buf())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on shall fail where it stands")]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_judged_behind_its_links() {
        let top = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/etc", top.path().join("link")).unwrap();
        for refused in ["link", "link/not/there/yet", "not/there/../../link"] {
            check(&top.path().join(refused)).unwrap_err();
        }
        check(Path::new("/")).unwrap_err();
        check(&top.path().join("model")).unwrap();
        check(&top.path().join("not/there/yet")).unwrap();
    }
}
