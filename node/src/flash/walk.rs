//! Looks at all files of the source, links followed. Anything that could not be copied right is an
//! error before the first byte is copied (LOAD-01).

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use flexinfer_core::loading::{Found, Modified, Wishes};
use flexinfer_core::sources::RelativePath;
use rustix::io::Errno;

use super::error::FlashError;
use super::spans;

/// A file of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) found: Found,
    /// The file itself, behind all links.
    pub(super) file: PathBuf,
    pub(super) identity: Identity,
}

impl Entry {
    /// Where it lies in the source, with its own name and beside its siblings.
    pub(super) fn source(&self, source: &Path) -> PathBuf {
        self.found.path.below(source)
    }
}

/// What tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
    length: u64,
    modified: Modified,
}

impl Identity {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: modified(metadata),
        }
    }
}

pub(crate) fn modified(metadata: &Metadata) -> Modified {
    Modified { seconds: metadata.mtime(), nanoseconds: metadata.mtime_nsec() }
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

/// All files below `source` that `wishes` do not leave out, in the order of their names.
pub(super) fn walk(
    source: &Path,
    root: Option<&Path>,
    wishes: &Wishes,
) -> Result<Vec<Entry>, FlashError> {
    let no_source =
        |source_error| FlashError::NoSource { path: source.to_path_buf(), source: source_error };
    let top = fs::canonicalize(source).map_err(no_source)?;
    let root = root_of(&top, root).map_err(no_source)?;
    fs::read_dir(&top).map_err(no_source)?;
    let mut walk = Walk { root, wishes, entries: Vec::new(), within: Vec::new() };
    walk.folder(&top, &top, None)?;
    walk.entries.sort_by(|a, b| a.found.path.cmp(&b.found.path));
    Ok(walk.entries)
}

struct Walk<'a> {
    root: PathBuf,
    wishes: &'a Wishes,
    entries: Vec<Entry>,
    /// The real folders that we are in, to notice a link that leads back.
    within: Vec<PathBuf>,
}

impl Walk<'_> {
    /// Looks at the folder `real`, which is called `path` in the source and `shown` in messages.
    fn folder(
        &mut self,
        real: &Path,
        shown: &Path,
        path: Option<&RelativePath>,
    ) -> Result<(), FlashError> {
        if self.within.iter().any(|folder| folder == real) {
            return Err(bad(shown, "its links lead round in a circle; remove the link"));
        }
        self.within.push(real.to_path_buf());
        // The hub's cache: its blobs are what the links of its snapshots lead to.
        let cache = real.join("snapshots").is_dir();
        for entry in fs::read_dir(real).map_err(|error| FlashError::reading(shown, error))? {
            let entry = entry.map_err(|error| FlashError::reading(shown, error))?;
            if cache && entry.file_name() == "blobs" {
                continue;
            }
            let below = below(path, &entry, shown)?;
            let shown = || shown.join(entry.file_name());
            let kind = entry.file_type().map_err(|error| FlashError::reading(&shown(), error))?;
            if self.wishes.leaves_out(&below)
                || (!kind.is_file() && self.wishes.leaves_out_folder(&below))
            {
                continue;
            }
            if kind.is_file() {
                // Asked for by its name in the open folder: a whole path is slower to look up.
                let metadata = entry.metadata();
                let metadata = metadata.map_err(|error| FlashError::reading(&shown(), error))?;
                self.file(entry.path(), &shown, below, &metadata)?;
            } else {
                self.entry(&entry.path(), &shown(), below, kind.is_symlink())?;
            }
        }
        self.within.pop();
        Ok(())
    }

    fn entry(
        &mut self,
        path: &Path,
        shown: &Path,
        below: RelativePath,
        link: bool,
    ) -> Result<(), FlashError> {
        let real = if link { self.resolve(path, shown)? } else { path.to_path_buf() };
        let metadata = fs::metadata(&real).map_err(|error| FlashError::reading(shown, error))?;
        if metadata.is_dir() {
            return self.folder(&real, shown, Some(&below));
        }
        if !metadata.is_file() {
            return Err(bad(shown, "it is neither a file nor a folder; exclude it"));
        }
        self.file(real, &|| shown.to_path_buf(), below, &metadata)
    }

    fn file(
        &mut self,
        real: PathBuf,
        shown: &dyn Fn() -> PathBuf,
        below: RelativePath,
        metadata: &Metadata,
    ) -> Result<(), FlashError> {
        let stored = stored(&real, metadata);
        let stored = stored.map_err(|error| FlashError::reading(&shown(), error))?;
        let (length, modified) = (metadata.len(), modified(metadata));
        self.entries.push(Entry {
            found: Found { path: below, length, stored, modified },
            identity: Identity::of(metadata),
            file: real,
        });
        Ok(())
    }

    /// What a link leads to, if that is there and within the root.
    fn resolve(&self, path: &Path, shown: &Path) -> Result<PathBuf, FlashError> {
        let target = fs::canonicalize(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                bad(shown, "it is a link to something that is not there; get it again")
            }
            _ if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
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

fn below(
    folder: Option<&RelativePath>,
    entry: &fs::DirEntry,
    shown: &Path,
) -> Result<RelativePath, FlashError> {
    let name = entry.file_name();
    let bad = |why| bad(&shown.join(&name), why);
    let text = name.to_str().ok_or_else(|| bad("its name is not text; rename it"))?;
    let path = folder.map_or_else(|| text.to_owned(), |folder| format!("{folder}/{text}"));
    RelativePath::parse(&path).map_err(|_| {
        bad("its name has a backslash or a control character in it; rename or exclude it")
    })
}

/// The bytes of a file that are not holes. Its blocks only tell that there may be holes: a compressed
/// file has few blocks as well (LOAD-07).
fn stored(path: &Path, metadata: &Metadata) -> io::Result<u64> {
    if !spans::may_have_holes(metadata) {
        return Ok(metadata.len());
    }
    let file = File::open(path)?;
    let mut sum = 0;
    for span in spans::stored(&file, 0..metadata.len()) {
        let span = span?;
        sum += span.end - span.start;
    }
    Ok(sum)
}

fn bad(path: &Path, why: &'static str) -> FlashError {
    FlashError::BadEntry { path: path.to_path_buf(), why }
}
