//! Looks at all files of the source: at their names first, then by several threads at what each is. A network's
//! file system takes its time for every file, and any takes some for a great many.

use std::fs::File;
use std::io;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use flexinfer_core::loading::{Found, Wishes};
use flexinfer_core::sources::RelativePath;
use rustix::fs::{AtFlags, Mode, OFlags, openat, statat};

use super::arguments::Arguments;
use super::error::FlashError;
use super::folders::{Folder, Opened, Place};
use super::spans;
use super::state::{self, Identity};
use super::walk::{Names, walk};

/// A file of the source.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) found: Found,
    pub(super) identity: Identity,
    /// Who may do what with it.
    pub(super) mode: Mode,
    pub(super) place: Place,
}

impl AsRef<Found> for Entry {
    fn as_ref(&self) -> &Found {
        &self.found
    }
}

impl Entry {
    /// Whether both are the same file in the same state, under the same name.
    fn is(&self, other: &Self) -> bool {
        self.found == other.found && self.identity == other.identity
    }

    /// Opens it in its folder.
    pub(super) fn open(&self, folders: &mut Opened<'_>) -> io::Result<File> {
        open(folders.get(self.place.folder)?, self.place.name(&self.found.path))
    }
}

/// What there is in the source.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) folders: Vec<Folder>,
    pub(super) entries: Vec<Entry>,
}

impl Seen {
    /// Looks at everything that `wishes` do not leave out.
    pub(super) fn now(arguments: &Arguments, wishes: &Wishes) -> Result<Self, FlashError> {
        let source = &arguments.src;
        let Names { folders, files } = walk(source, arguments.root.as_deref(), wishes)?;
        let share = files.len().div_ceil(arguments.concurrency).max(1);
        let measured = thread::scope(|scope| {
            let folders = &folders;
            let begin = |share| scope.spawn(move || measure(source, folders, share));
            let threads = files.chunks(share).map(begin).collect::<Vec<_>>();
            let ended = threads.into_iter().map(thread::ScopedJoinHandle::join);
            let measured = ended.map(|share| share.unwrap_or_else(|panic| resume_unwind(panic)));
            measured.collect::<Result<Vec<_>, _>>()
        })?;
        let measured = measured.into_iter().flatten();
        let entry = |((path, place), measure): ((RelativePath, Place), Measure)| {
            let Measure { identity, mode, stored } = measure;
            let (length, modified) = (identity.length, identity.modified);
            let found = Found { path, length, stored, modified };
            Entry { found, identity, mode, place }
        };
        let entries = files.into_iter().zip(measured).map(entry).collect();
        Ok(Self { folders, entries })
    }

    /// Where a file really is, for messages about it.
    pub(super) fn place(&self, entry: &Entry) -> PathBuf {
        let folder = self.folders.get(entry.place.folder);
        let folder = folder.map_or(Path::new(""), |folder| &folder.real);
        folder.join(entry.place.name(&entry.found.path))
    }

    /// The first file that is not the same in both.
    pub(super) fn difference<'a>(&'a self, later: &'a Self) -> Option<&'a RelativePath> {
        // Most often they are alike, and in the same order.
        if self.entries.len() == later.entries.len()
            && self.entries.iter().zip(&later.entries).all(|(before, after)| before.is(after))
        {
            return None;
        }
        let (before, after) = (self.in_order(), later.in_order());
        let unlike = before.iter().zip(&after).find(|(before, after)| !before.is(after));
        let more = || before.get(after.len()).or_else(|| after.get(before.len()));
        let entry = unlike.map(|(before, _)| before).or_else(more)?;
        Some(&entry.found.path)
    }

    fn in_order(&self) -> Vec<&Entry> {
        let mut entries = self.entries.iter().collect::<Vec<_>>();
        entries.sort_unstable_by(|a, b| a.found.path.cmp(&b.found.path));
        entries
    }
}

/// What a look at a file shows.
struct Measure {
    identity: Identity,
    mode: Mode,
    /// How many of its bytes are no holes.
    stored: u64,
}

/// Looks at each of the files.
fn measure(
    source: &Path,
    folders: &[Folder],
    files: &[(RelativePath, Place)],
) -> Result<Vec<Measure>, FlashError> {
    let mut folders = Opened::in_source(folders);
    let measure = |(path, place): &(RelativePath, Place)| {
        let folder = folders.get(place.folder);
        let measure = folder.and_then(|folder| Measure::of(folder, place.name(path)));
        measure.map_err(|error| FlashError::reading(&path.below(source), error))
    };
    files.iter().map(measure).collect()
}

impl Measure {
    fn of(folder: &File, name: &Path) -> io::Result<Self> {
        let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let identity = Identity::of(&stat);
        let mut stored = identity.length;
        // Its blocks only tell that there may be holes: a compressed file has few blocks as well (LOAD-07).
        if state::may_have_holes(&stat) {
            let file = open(folder, name)?;
            let spans = spans::stored(&file, 0..identity.length);
            stored =
                spans.map(|span| span.map(|span| span.end - span.start)).sum::<io::Result<_>>()?;
        }
        Ok(Self { identity, mode: state::rights(&stat), stored })
    }
}

fn open(folder: &File, name: &Path) -> io::Result<File> {
    Ok(File::from(openat(folder, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?))
}
