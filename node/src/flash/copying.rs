//! The workers that copy the pieces of a plan.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use flexinfer_core::loading::{Piece, Plan};

use super::arguments::Arguments;
use super::error::FlashError;
use super::mover::{Fault, Mover};
use super::part::Part;
use super::peers::Peers;
use super::walk::{Entry, Identity};
use super::{spans, verify};
use crate::progress::Shown;

/// The longest piece: short enough to keep all workers busy to the end, long enough for a volume to
/// read ahead.
const PIECE: NonZeroU64 = NonZeroU64::MIN.saturating_add((64 << 20) - 1);

/// Files longer than this are told of, one line each.
const TOLD: u64 = 100 << 20;

pub(super) struct Copying<'a> {
    arguments: &'a Arguments,
    files: Vec<Copied<'a>>,
    pieces: Vec<Piece>,
    next: AtomicUsize,
    done: AtomicU64,
    total: u64,
    peers: Option<&'a Peers>,
    stopped: &'a AtomicBool,
    failed: Mutex<Option<FlashError>>,
    shown: Shown,
}

/// A file of which some pieces may be copied.
struct Copied<'a> {
    entry: &'a Entry,
    part: Mutex<Option<Arc<Part>>>,
    missing: AtomicUsize,
}

impl<'a> Copying<'a> {
    /// The copying of `plan`, whose copies are `entries`, in the same order.
    pub(super) fn new(
        arguments: &'a Arguments,
        plan: &Plan,
        entries: &[&'a Entry],
        peers: Option<&'a Peers>,
        stopped: &'a AtomicBool,
    ) -> Self {
        let pieces = plan.pieces(PIECE);
        let files = entries.iter().map(|entry| Copied {
            entry,
            part: Mutex::new(None),
            missing: AtomicUsize::new(0),
        });
        let mut files = files.collect::<Vec<_>>();
        for piece in &pieces {
            if let Some(file) = files.get_mut(piece.file) {
                *file.missing.get_mut() += 1;
            }
        }
        Self {
            arguments,
            files,
            next: AtomicUsize::new(0),
            done: AtomicU64::new(0),
            total: plan.length(),
            peers,
            stopped,
            failed: Mutex::new(None),
            shown: Shown::new(),
            pieces,
        }
    }

    /// Copies everything. The first failure ends it, and removes what is half-written.
    pub(super) fn run(self) -> Result<(), FlashError> {
        self.make_folders()?;
        std::thread::scope(|scope| {
            for _ in 0..self.arguments.concurrency.min(self.pieces.len()) {
                scope.spawn(|| self.work());
            }
        });
        let failed = self.failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        failed.map_or(Ok(()), Err)
    }

    /// Makes the folders of all copies, each once and not once a file.
    fn make_folders(&self) -> Result<(), FlashError> {
        let paths = self.files.iter().map(|file| file.entry.found.path.as_str());
        let folders = paths.map(|path| path.rsplit_once('/').map_or("", |(folder, _)| folder));
        for folder in folders.collect::<BTreeSet<_>>() {
            let folder = self.arguments.dst.join(folder);
            fs::create_dir_all(&folder).map_err(|error| FlashError::writing(&folder, error))?;
        }
        Ok(())
    }

    fn work(&self) {
        let mut mover = Mover::new(self.arguments.buffer_kb << 10, self.arguments.verify);
        while let Some(piece) = self.pieces.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let Some(file) = self.files.get(piece.file) else { return };
            if let Err(error) = self.piece(file, piece, &mut mover) {
                // No other worker takes a piece any more.
                self.next.store(self.pieces.len(), Ordering::Relaxed);
                let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.get_or_insert(error);
                return;
            }
        }
    }

    fn piece(&self, file: &Copied<'_>, piece: &Piece, mover: &mut Mover) -> Result<(), FlashError> {
        let entry = file.entry;
        let reading = |error| FlashError::reading(&entry.file, error);
        let part = file.part(self.arguments)?;
        let source = File::open(&entry.file).map_err(reading)?;
        let own;
        let copy = if piece.length == entry.found.length {
            // Whether it is still the one that was looked at shows when all of it is there.
            &part.file
        } else {
            entry.is_still(&source.metadata().map_err(reading)?)?;
            own = part.open_again().map_err(|error| FlashError::writing(part.path(), error))?;
            &own
        };
        let ends = Ends { entry, source: &source, part: &part, copy };
        let range = piece.from..piece.from + piece.length;
        let sparse = entry.found.stored < entry.found.length;
        if !sparse && self.taken_from_a_peer(&ends, &range) {
            self.tell(piece.length);
        } else if sparse {
            for span in spans::stored(&source, range) {
                self.span(&ends, span.map_err(reading)?, mover)?;
            }
        } else {
            if piece.length > mover.size() {
                advise_to_read_ahead(&source, piece);
            }
            self.span(&ends, range, mover)?;
        }
        if file.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            file.part.lock().unwrap_or_else(PoisonError::into_inner).take();
            self.finish(&ends)?;
        }
        Ok(())
    }

    /// Whether the piece came from another node.
    fn taken_from_a_peer(&self, ends: &Ends<'_>, range: &std::ops::Range<u64>) -> bool {
        let give = |peers: &Peers| peers.give(ends.entry, range, ends.copy, self.stopped);
        !range.is_empty() && self.peers.is_some_and(give)
    }

    /// Copies `span`, one read at a time.
    fn span(
        &self,
        ends: &Ends<'_>,
        span: std::ops::Range<u64>,
        mover: &mut Mover,
    ) -> Result<(), FlashError> {
        let mut at = span.start;
        while at < span.end {
            if self.stopped.load(Ordering::Relaxed) {
                return Err(FlashError::Stopped);
            }
            let moved = mover.step(ends.source, ends.copy, at, span.end - at);
            let moved = moved.map_err(|fault| ends.explain(fault))?;
            if moved == 0 {
                // It ends before its length: somebody has cut it.
                return Err(FlashError::Changed { path: ends.entry.file.clone() });
            }
            if !self.arguments.keep_page_cache {
                forget(ends.source, at, moved);
            }
            at += moved;
            self.tell(moved);
        }
        Ok(())
    }

    /// All pieces are there: checks the copy and gives it its name.
    fn finish(&self, ends: &Ends<'_>) -> Result<(), FlashError> {
        let (entry, part) = (ends.entry, ends.part);
        // Another file that came under its name is found by the look after all copies.
        let metadata = ends.source.metadata();
        let metadata = metadata.map_err(|error| FlashError::reading(&entry.file, error))?;
        entry.is_still(&metadata)?;
        if self.arguments.verify {
            verify::check_digest(&part.file, &entry.file, self.stopped)?;
        }
        part.publish(&metadata).map_err(|error| FlashError::writing(part.target(), error))?;
        if entry.found.length >= TOLD {
            self.shown.beside(
                || tracing::info!(path = %entry.found.path, bytes = entry.found.length, "copied"),
            );
        }
        Ok(())
    }

    fn tell(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let (done_mib, total_mib) = (done >> 20, self.total >> 20);
        self.shown.tell(done, self.total, || format!("copying: {done_mib} of {total_mib} MiB"));
    }
}

/// The two ends of the copying of one piece.
struct Ends<'a> {
    entry: &'a Entry,
    source: &'a File,
    part: &'a Part,
    /// The part, with a position that no other worker moves.
    copy: &'a File,
}

impl Ends<'_> {
    fn explain(&self, fault: Fault) -> FlashError {
        match fault {
            Fault::Source(error) => FlashError::reading(&self.entry.file, error),
            Fault::Copy(error) => FlashError::writing(self.part.target(), error),
            Fault::Different => FlashError::Different { path: self.part.target().to_path_buf() },
        }
    }
}

impl Copied<'_> {
    /// The part of this file, begun by the first who asks.
    fn part(&self, arguments: &Arguments) -> Result<Arc<Part>, FlashError> {
        let mut part = self.part.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = part.as_ref() {
            return Ok(Arc::clone(part));
        }
        let target = self.entry.found.path.below(&arguments.dst);
        let begun = Part::begin(self.entry, target.clone());
        let begun = Arc::new(begun.map_err(|error| FlashError::writing(&target, error))?);
        *part = Some(Arc::clone(&begun));
        Ok(begun)
    }
}

impl Entry {
    /// Whether the file is the one that was looked at (LOAD-08).
    fn is_still(&self, metadata: &fs::Metadata) -> Result<(), FlashError> {
        let same = Identity::of(metadata) == self.identity;
        if same { Ok(()) } else { Err(FlashError::Changed { path: self.file.clone() }) }
    }
}

/// Tells the system that the piece will be read from its beginning to its end.
fn advise_to_read_ahead(source: &File, piece: &Piece) {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{Advice, fadvise};
        let length = NonZeroU64::new(piece.length);
        // Only advice: without it everything is right and slower.
        let _advised = fadvise(source, piece.from, length, Advice::Sequential);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (source, piece);
}

/// Gives back the page cache of what was copied: the memory is needed for the copy.
fn forget(source: &File, at: u64, length: u64) {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{Advice, fadvise};
        let _advised = fadvise(source, at, NonZeroU64::new(length), Advice::DontNeed);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (source, at, length);
}
