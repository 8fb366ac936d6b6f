//! The workers that copy the pieces of a plan.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use flexinfer_core::loading::{Piece, Plan};
use flexinfer_core::sources::RelativePath;
use rustix::fs::{Stat, fstat};

use super::arguments::Arguments;
use super::destination::Destination;
use super::error::FlashError;
use super::folders::Opened;
use super::look::{Entry, Seen};
use super::mover::{Fault, Mover};
use super::part::{Part, Taken};
use super::peers::Peers;
use super::state::Identity;
use super::turns::{Turn, Turns};
use super::{page_cache, spans, verify};
use crate::progress::{Counts, Shown};

/// The longest piece: short enough to keep all workers busy to the end, long enough for a volume to
/// read ahead.
const PIECE: NonZeroU64 = NonZeroU64::MIN.saturating_add((64 << 20) - 1);

/// Files longer than this are told of, one line each.
const TOLD: u64 = 100 << 20;

pub(super) struct Copying<'a> {
    arguments: &'a Arguments,
    destination: &'a Destination<'a>,
    seen: &'a Seen,
    files: Vec<Copied<'a>>,
    pieces: Vec<Piece>,
    turns: Turns,
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
    taken: Taken,
    part: Mutex<Option<Arc<Part<'a>>>>,
    missing: AtomicUsize,
    /// Whether it has its name.
    published: AtomicBool,
}

/// What one worker has.
struct Tools<'a> {
    sources: Opened<'a>,
    copies: Opened<'a>,
    mover: Mover,
}

impl<'a> Copying<'a> {
    /// The copying of `plan`.
    pub(super) fn new(
        arguments: &'a Arguments,
        destination: &'a Destination<'a>,
        seen: &'a Seen,
        plan: &Plan<&'a Entry>,
        peers: Option<&'a Peers>,
        counts: Counts,
        stopped: &'a AtomicBool,
    ) -> Self {
        let pieces = plan.pieces(PIECE);
        let files = plan.copies.iter().map(|&entry| Copied {
            entry,
            taken: Taken::WrittenOver,
            part: Mutex::new(None),
            missing: AtomicUsize::new(0),
            published: AtomicBool::new(false),
        });
        let mut files = files.collect::<Vec<_>>();
        for piece in &pieces {
            if let Some(file) = files.get_mut(piece.file) {
                *file.missing.get_mut() += 1;
            }
        }
        Self {
            arguments,
            destination,
            seen,
            files,
            done: AtomicU64::new(0),
            total: plan.length(),
            peers,
            stopped,
            failed: Mutex::new(None),
            shown: Shown::new(counts),
            turns: Turns::of(&pieces),
            pieces,
        }
    }

    /// The same, where only files of `ours` are written over: what has come under the name of any other since it was
    /// looked whether that is free is somebody else's.
    pub(super) fn writing_over_only(mut self, ours: &[RelativePath]) -> Self {
        let ours = ours.iter().collect::<HashSet<_>>();
        for file in self.files.iter_mut().filter(|file| !ours.contains(&file.entry.found.path)) {
            file.taken = Taken::Stays;
        }
        self
    }

    /// The files that have not come, and would not have been written over.
    pub(super) fn missing(&self) -> impl Iterator<Item = &'a Entry> {
        let is_missing = |file: &&Copied<'a>| {
            file.taken == Taken::Stays && !file.published.load(Ordering::Relaxed)
        };
        self.files.iter().filter(is_missing).map(|file| file.entry)
    }

    /// Copies everything. The first failure ends it, and removes what is half-written.
    pub(super) fn run(&self) -> Result<(), FlashError> {
        std::thread::scope(|scope| {
            for _ in 0..self.arguments.concurrency.min(self.turns.most_workers()) {
                scope.spawn(|| self.work());
            }
        });
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        failed.map_or(Ok(()), Err)
    }

    fn work(&self) {
        let folders = &self.seen.folders;
        let mut tools = Tools {
            sources: Opened::in_source(folders),
            copies: Opened::below(&self.destination.folder, folders),
            mover: Mover::new(self.arguments.buffer_kb << 10, self.arguments.verify),
        };
        let mut last = None;
        while let Some(turn) = self.turns.next(last.take()) {
            if let Err(error) = self.turn(&turn, &mut tools) {
                self.turns.end();
                let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.get_or_insert(error);
                return;
            }
            last = Some(turn);
        }
    }

    fn turn(&self, turn: &Turn, tools: &mut Tools<'_>) -> Result<(), FlashError> {
        for piece in self.pieces.get(turn.pieces.clone()).into_iter().flatten() {
            if let Some(file) = self.files.get(piece.file) {
                self.piece(file, piece, turn, tools)?;
            }
        }
        Ok(())
    }

    fn piece(
        &self,
        file: &Copied<'a>,
        piece: &Piece,
        turn: &Turn,
        tools: &mut Tools<'_>,
    ) -> Result<(), FlashError> {
        let entry = file.entry;
        let source = entry.open(&mut tools.sources).map_err(|error| self.reading(entry, error))?;
        let part = self.part(file, &mut tools.copies)?;
        let own;
        let copy = if piece.length == entry.found.length {
            // Whether it is still the one that was looked at shows when all of it is there.
            &part.file
        } else {
            self.look_again(entry, &source)?;
            own = part.open_again().map_err(|error| FlashError::writing(&part.target(), error))?;
            &own
        };
        let ends = Ends { entry, source: &source, part: &part, copy, turn };
        let range = piece.from..piece.from + piece.length;
        let sparse = entry.found.stored < entry.found.length;
        if !sparse && self.taken_from_a_peer(&ends, &range) {
            self.tell(piece.length);
        } else if sparse {
            for span in spans::stored(&source, range) {
                let span = span.map_err(|error| self.reading(entry, error))?;
                self.span(&ends, span, &mut tools.mover)?;
            }
        } else {
            if piece.length > tools.mover.size() {
                page_cache::read_ahead(&source, piece);
            }
            self.span(&ends, range, &mut tools.mover)?;
        }
        if file.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            file.part.lock().unwrap_or_else(PoisonError::into_inner).take();
            self.finish(file, &ends)?;
        }
        Ok(())
    }

    /// The part of this file, begun by the first who asks.
    fn part(
        &self,
        file: &Copied<'a>,
        folders: &mut Opened<'_>,
    ) -> Result<Arc<Part<'a>>, FlashError> {
        let mut part = file.part.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = part.as_ref() {
            return Ok(Arc::clone(part));
        }
        let folder = folders.get(file.entry.place.folder).cloned();
        let begun = folder.and_then(|folder| Part::begin(self.destination, file.entry, folder));
        let target = || file.entry.found.path.below(self.destination.path);
        let begun = Arc::new(begun.map_err(|error| FlashError::writing(&target(), error))?);
        *part = Some(Arc::clone(&begun));
        Ok(begun)
    }

    /// Whether the file is the one that was looked at (LOAD-08).
    fn look_again(&self, entry: &Entry, source: &File) -> Result<Stat, FlashError> {
        let stat = fstat(source).map_err(|error| self.reading(entry, error.into()))?;
        if Identity::of(&stat) == entry.identity {
            return Ok(stat);
        }
        Err(FlashError::Changed { path: self.seen.place(entry) })
    }

    fn reading(&self, entry: &Entry, error: io::Error) -> FlashError {
        FlashError::reading(&self.seen.place(entry), error)
    }

    /// Whether the piece came from another node.
    fn taken_from_a_peer(&self, ends: &Ends<'_>, range: &Range<u64>) -> bool {
        let give = |peers: &Peers| peers.give(ends.entry, range, ends.copy, self.stopped);
        !range.is_empty() && self.peers.is_some_and(give)
    }

    /// Copies `span`, one read at a time.
    fn span(&self, ends: &Ends<'_>, span: Range<u64>, mover: &mut Mover) -> Result<(), FlashError> {
        let mut at = span.start;
        while at < span.end {
            if self.stopped.load(Ordering::Relaxed) {
                return Err(FlashError::Stopped);
            }
            let alone = ends.turn.is_alone();
            let moved = mover.step(ends.source, ends.copy, at, span.end - at, alone);
            let moved = moved.map_err(|fault| self.explain(ends, fault))?;
            if moved == 0 {
                // It ends before its length: somebody has cut it.
                return Err(FlashError::Changed { path: self.seen.place(ends.entry) });
            }
            if !self.arguments.keep_page_cache {
                page_cache::forget(ends.source, at, moved);
            }
            at += moved;
            self.tell(moved);
        }
        Ok(())
    }

    /// All pieces are there: checks the copy and gives it its name.
    fn finish(&self, file: &Copied<'_>, ends: &Ends<'_>) -> Result<(), FlashError> {
        let (entry, part) = (ends.entry, ends.part);
        // Another file that came under its name is found by the look after all copies.
        let stat = self.look_again(entry, ends.source)?;
        if self.arguments.verify {
            verify::check_digest(&part.file, &self.seen.place(entry), self.stopped)?;
        }
        part.publish(&stat, file.taken).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => FlashError::Theirs { path: part.target() },
            _ => FlashError::writing(&part.target(), error),
        })?;
        file.published.store(true, Ordering::Relaxed);
        if entry.found.length >= TOLD {
            self.shown.beside(
                || tracing::info!(path = %entry.found.path, bytes = entry.found.length, "copied"),
            );
        }
        Ok(())
    }

    fn explain(&self, ends: &Ends<'_>, fault: Fault) -> FlashError {
        match fault {
            Fault::Source(error) => self.reading(ends.entry, error),
            Fault::Copy(error) => FlashError::writing(&ends.part.target(), error),
            Fault::Different => FlashError::Different { path: ends.part.target() },
        }
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
    part: &'a Part<'a>,
    /// The part, with a position that no other worker moves.
    copy: &'a File,
    turn: &'a Turn,
}
