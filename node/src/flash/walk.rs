//! The names of all files of the source, links followed. Anything that could not be copied right is an error
//! before the first byte is copied (LOAD-01).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use flexinfer_core::loading::Wishes;
use flexinfer_core::sources::RelativePath;
use rustix::fs::{AtFlags, Dir, DirEntry, FileType, statat};
use rustix::io::Errno;

use super::error::FlashError;
use super::folders::{Folder, Place};

/// All files that are wanted, each folder's together, in the order of their numbers there: disks and
/// caches have them in that order too, and an unchanged folder gives the same one again.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) folders: Vec<Folder>,
    pub(super) files: Vec<(RelativePath, Place)>,
}

/// Where links may lead: `given`, else the hub's cache of the repository that `source` is a snapshot
/// of (`…/snapshots/<commit>`, whose files are links to `…/blobs`), else `source` itself.
fn root_of(source: &Path, given: Option<&Path>) -> io::Result<PathBuf> {
    if let Some(given) = given {
        return fs::canonicalize(given);
    }
    let snapshots = source.ancestors().find(|folder| folder.ends_with("snapshots"));
    let repository = snapshots.and_then(Path::parent).filter(|cache| cache.join("blobs").is_dir());
    Ok(repository.unwrap_or(source).to_path_buf())
}

/// All files below `source` that `wishes` do not leave out.
pub(super) fn walk(
    source: &Path,
    root: Option<&Path>,
    wishes: &Wishes,
) -> Result<Names, FlashError> {
    let no_source =
        |source_error| FlashError::NoSource { path: source.to_path_buf(), source: source_error };
    let top = fs::canonicalize(source).map_err(no_source)?;
    let root = root_of(&top, root).map_err(no_source)?;
    fs::read_dir(&top).map_err(no_source)?;
    let mut walk = Walk { root, wishes, names: Names::default(), within: Vec::new() };
    walk.folder(&top, &top, None)?;
    Ok(walk.names)
}

struct Walk<'a> {
    root: PathBuf,
    wishes: &'a Wishes,
    names: Names,
    /// The real folders that we are in, to notice a link that leads back.
    within: Vec<PathBuf>,
}

impl Walk<'_> {
    /// Looks at the folder `real`, which is called `path` in the source and `shown` in messages.
    fn folder(
        &mut self,
        real: &Path,
        shown: &Path,
        path: Option<RelativePath>,
    ) -> Result<(), FlashError> {
        if self.within.iter().any(|folder| folder == real) {
            return Err(bad(shown, "its links lead round in a circle; remove the link"));
        }
        self.within.push(real.to_path_buf());
        // The hub's cache: its blobs are what the links of its snapshots lead to.
        let cache = real.join("snapshots").is_dir();
        let number = self.names.folders.len();
        let mut others = Vec::new();
        for (kind, entry) in entries(real).map_err(|error| FlashError::reading(shown, error))? {
            if cache && entry.file_name().to_bytes() == b"blobs" {
                continue;
            }
            let path = below(path.as_ref(), &entry, shown)?;
            if self.wishes.leaves_out(&path)
                || (kind != FileType::RegularFile && self.wishes.leaves_out_folder(&path))
            {
                continue;
            }
            if kind == FileType::RegularFile {
                self.names.files.push((path, Place { folder: number, behind: None }));
            } else {
                others.push((kind, path));
            }
        }
        self.names.folders.push(Folder { real: real.to_path_buf(), path });
        for (kind, path) in others {
            self.other(number, real, shown, path, kind == FileType::Symlink)?;
        }
        self.within.pop();
        Ok(())
    }

    /// Looks at what is no plain file in the folder `real`, the one of this `number`.
    fn other(
        &mut self,
        number: usize,
        real: &Path,
        shown: &Path,
        path: RelativePath,
        link: bool,
    ) -> Result<(), FlashError> {
        let (place, shown) = (real.join(path.file_name()), shown.join(path.file_name()));
        let place = if link { self.resolve(&place, &shown)? } else { place };
        let metadata = fs::metadata(&place).map_err(|error| FlashError::reading(&shown, error))?;
        if metadata.is_dir() {
            return self.folder(&place, &shown, Some(path));
        }
        if !metadata.is_file() {
            return Err(bad(&shown, "it is neither a file nor a folder; exclude it"));
        }
        self.names.files.push((path, Place { folder: number, behind: Some(place) }));
        Ok(())
    }

    /// What a link leads to, if that is there and within the root.
    fn resolve(&self, path: &Path, shown: &Path) -> Result<PathBuf, FlashError> {
        let target = fs::canonicalize(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                bad(shown, "it is a link to something that is not there; get it again")
            }
            _ if Errno::from_io_error(&error) == Some(Errno::LOOP) => {
                bad(shown, "its links lead round in a circle; remove the link")
            }
            _ => FlashError::reading(shown, error),
        })?;
        if target.starts_with(&self.root) {
            return Ok(target);
        }
        let (path, root) = (shown.to_path_buf(), self.root.clone());
        Err(FlashError::Outside { path, target, root })
    }
}

/// What is in a folder, by number.
fn entries(folder: &Path) -> io::Result<Vec<(FileType, DirEntry)>> {
    let folder = File::open(folder)?;
    let mut entries = Vec::new();
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if [&b"."[..], b".."].contains(&name.to_bytes()) {
            continue;
        }
        let kind = match entry.file_type() {
            // Not every file system tells it here.
            FileType::Unknown => {
                let stat = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(stat.st_mode)
            }
            kind => kind,
        };
        entries.push((kind, entry));
    }
    entries.sort_unstable_by_key(|(_, entry)| entry.ino());
    Ok(entries)
}

fn below(
    folder: Option<&RelativePath>,
    entry: &DirEntry,
    shown: &Path,
) -> Result<RelativePath, FlashError> {
    let name = entry.file_name();
    let bad = |why| bad(&shown.join(name.to_string_lossy().as_ref()), why);
    let text = name.to_str().map_err(|_| bad("its name is not text; rename it"))?;
    let parsed = match folder {
        None => RelativePath::parse(text),
        Some(folder) => RelativePath::parse(&format!("{folder}/{text}")),
    };
    parsed.map_err(|_| {
        bad("its name has a backslash or a control character in it; rename or exclude it")
    })
}

fn bad(path: &Path, why: &'static str) -> FlashError {
    FlashError::BadEntry { path: path.to_path_buf(), why }
}
