//! Whether a destination may be copied to: it is no folder of the system's, and nothing of somebody else's lies where
//! a copy is to.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use flexinfer_core::loading::place::may_hold_copies;
use flexinfer_core::sources::RelativePath;

use super::destination::Destination;
use super::error::FlashError;
use super::folders::{Folder, Opened};
use super::look::{Entry, Seen};
use super::part;
use super::record::Known;
use crate::inside;

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

/// Whether `source` is not copied to itself, the open folder `copy` at `path`: what was its own would be taken for a copy,
/// and be removed as one.
pub(super) fn check_apart(source: &Path, copy: &File, path: &Path) -> Result<(), FlashError> {
    let number = |found: Metadata| (found.dev(), found.ino());
    match (fs::metadata(source).map(number), copy.metadata().map(number)) {
        (Ok(source), Ok(copy)) if source == copy => {
            let why = "it is the folder with the weights (FLASH_SRC) itself";
            Err(FlashError::Misplaced { path: path.to_path_buf(), why })
        }
        _ => Ok(()),
    }
}

/// The same for each of the `folders` below: one of them may be mounted there.
pub(super) fn check_folders_apart(
    folders: &[Folder],
    destination: &Destination<'_>,
) -> Result<(), FlashError> {
    folders.iter().try_for_each(|folder| {
        // What is no folder, or not there yet, is looked at elsewhere.
        let Ok(copy) = inside::folder(&destination.folder, folder.way()) else { return Ok(()) };
        check_apart(&folder.real, &copy, &folder.below(destination.path))
    })
}

/// Whether each of `copies` finds its place in the destination free, or held by what an earlier load has put there.
pub(super) fn check_theirs(
    destination: &Destination<'_>,
    seen: &Seen,
    copies: &[&Entry],
    known: &Known,
) -> Result<(), FlashError> {
    let (top, record) = (&destination.folder, destination.record());
    let theirs = |known: &Known| {
        let ours = known.files.iter().map(RelativePath::as_str).collect::<HashSet<_>>();
        let mut ways = copies.iter().filter_map(|entry| seen.folders.get(entry.place.folder));
        let mut folders = Opened::below(top, &seen.folders);
        let mut file = |entry: &&Entry| {
            let (path, folder) = (&entry.found.path, folders.get(entry.place.folder).ok()?);
            not_ours(folder, OsStr::new(path.file_name()), path.as_str(), &ours)
        };
        let folder = no_folder(top, &mut ways, &ours);
        folder.or_else(|| copies.iter().find_map(&mut file).map(PathBuf::from))
    };
    // A load beside this one may have put it there just now: its record is older than its files.
    let Some(way) = theirs(known).and_then(|_| theirs(&record.read())) else { return Ok(()) };
    let path = destination.path.join(way);
    if known.is_torn {
        Err(FlashError::Untold { path, record: record.path() })
    } else {
        Err(FlashError::Theirs { path })
    }
}

/// What is in the place of a folder of copies and is none, nor one of `ours`.
fn no_folder(
    top: &File,
    folders: &mut dyn Iterator<Item = &Folder>,
    ours: &HashSet<&str>,
) -> Option<PathBuf> {
    let mut looked_at = HashSet::new();
    let mut ways = folders.flat_map(|folder| folder.way().ancestors());
    ways.find_map(|way| {
        let (parent, name) = (way.parent()?, way.file_name()?);
        if !looked_at.insert(way) {
            return None;
        }
        let found = inside::folder(top, parent).and_then(|parent| inside::look(&parent, name));
        let is_other =
            found.is_ok_and(|found| found.is_some_and(|found| !inside::is_folder(&found)));
        let is_ours = way.to_str().is_some_and(|way| ours.contains(way));
        (is_other && !is_ours).then(|| way.to_path_buf())
    })
}

/// What is called `name` in `folder`, which is at `path`, or is below it, and is none of `ours`.
fn not_ours(folder: &File, name: &OsStr, path: &str, ours: &HashSet<&str>) -> Option<String> {
    if inside::is_folder(&inside::look(folder, name).ok()??) {
        let inner = inside::folder(folder, Path::new(name)).ok()?;
        return inside::entries(&inner).ok()?.iter().find_map(|(name, _)| {
            not_ours(&inner, name, &format!("{path}/{}", name.to_string_lossy()), ours)
        });
    }
    (!ours.contains(path) && !path.ends_with(part::SUFFIX)).then(|| path.to_owned())
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
