//! Which pieces a worker copies next. Whoever writes to a file keeps others from it, so workers are in files of their
//! own as long as there are enough, and share the last ones.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flexinfer_core::loading::{Piece, SHORT};

/// Short files that a worker takes at a time: workers that took each by itself would keep one another waiting.
const TOGETHER: usize = 16;

/// All turns of a plan.
pub(super) struct Turns {
    groups: Vec<Group>,
    left: Mutex<Left>,
}

/// The pieces of one long file, or short files that are neighbours.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    pieces: Range<usize>,
    short: bool,
}

/// What nobody has taken yet.
struct Left {
    /// The first group that is whole.
    next: usize,
    /// The rest of files of which others have taken pieces.
    begun: Vec<Begun>,
}

struct Begun {
    pieces: Range<usize>,
    workers: Arc<AtomicUsize>,
}

/// What one worker copies before it asks again.
pub(super) struct Turn {
    pub(super) pieces: Range<usize>,
    workers: Arc<AtomicUsize>,
}

impl Turns {
    /// The turns of `pieces`, which are in the order of their files, long ones first.
    pub(super) fn of(pieces: &[Piece]) -> Self {
        Self { groups: groups(pieces), left: Mutex::new(Left { next: 0, begun: Vec::new() }) }
    }

    /// The next turn of a worker, which ends its `last` by that.
    pub(super) fn next(&self, last: Option<Turn>) -> Option<Turn> {
        let mut left = self.left();
        let alone = last.as_ref().filter(|last| last.is_alone());
        let own = alone.and_then(|last| {
            left.begun.iter().position(|begun| Arc::ptr_eq(&begun.workers, &last.workers))
        });
        drop(last);
        if let Some(own) = own {
            return left.piece_of(own);
        }
        if let Some(group) = self.groups.get(left.next) {
            left.next += 1;
            return left.begin(group);
        }
        let fewest = |(_, begun): &(usize, &Begun)| {
            (begun.workers.load(Ordering::Relaxed), Reverse(begun.pieces.len()))
        };
        let (file, _) = left.begun.iter().enumerate().min_by_key(fewest)?;
        left.piece_of(file)
    }

    /// More workers than this would have nothing to do.
    pub(super) fn most_workers(&self) -> usize {
        let pieces = |group: &Group| if group.short { 1 } else { group.pieces.len() };
        self.groups.iter().map(pieces).sum()
    }

    /// Nobody gets a turn any more.
    pub(super) fn end(&self) {
        let mut left = self.left();
        left.next = self.groups.len();
        left.begun.clear();
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Left {
    fn begin(&mut self, group: &Group) -> Option<Turn> {
        let (pieces, workers) = (group.pieces.clone(), Arc::default());
        if group.short {
            return Some(Turn::begin(pieces, &workers));
        }
        self.begun.push(Begun { pieces, workers });
        self.piece_of(self.begun.len() - 1)
    }

    fn piece_of(&mut self, file: usize) -> Option<Turn> {
        let begun = self.begun.get_mut(file)?;
        let piece = begun.pieces.next()?;
        let turn = Turn::begin(piece..piece + 1, &begun.workers);
        if begun.pieces.is_empty() {
            self.begun.swap_remove(file);
        }
        Some(turn)
    }
}

impl Turn {
    fn begin(pieces: Range<usize>, workers: &Arc<AtomicUsize>) -> Self {
        workers.fetch_add(1, Ordering::Relaxed);
        Self { pieces, workers: Arc::clone(workers) }
    }

    /// Whether nobody else copies pieces of the same file now.
    pub(super) fn is_alone(&self) -> bool {
        self.workers.load(Ordering::Relaxed) == 1
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.workers.fetch_sub(1, Ordering::Relaxed);
    }
}

fn groups(pieces: &[Piece]) -> Vec<Group> {
    let mut groups = Vec::<Group>::new();
    let mut before = None;
    for (number, piece) in pieces.iter().enumerate() {
        let same_file = before.replace(piece.file) == Some(piece.file);
        let short = piece.length <= SHORT && !same_file;
        match groups.last_mut() {
            Some(group) if same_file || (short && group.short && group.pieces.len() < TOGETHER) => {
                group.pieces.end += 1;
            }
            _ => groups.push(Group { pieces: number..number + 1, short }),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: u64 = SHORT + 1;

    /// Files by the lengths of their pieces.
    fn pieces(files: &[&[u64]]) -> Vec<Piece> {
        let of_file = |(file, lengths): (usize, &&[u64])| {
            lengths.iter().map(|&length| Piece { file, from: 0, length }).collect::<Vec<_>>()
        };
        files.iter().enumerate().flat_map(of_file).collect()
    }

    fn taken(turn: Option<&Turn>) -> Range<usize> {
        turn.unwrap().pieces.clone()
    }

    #[test]
    fn short_files_are_taken_together_and_long_ones_piece_by_piece() {
        let mut files = vec![&[LONG, LONG, 5][..], &[LONG]];
        files.extend([&[SHORT][..]; TOGETHER + 1]);
        let turns = Turns::of(&pieces(&files));
        let mut last = None;
        let mut all = Vec::new();
        while let Some(turn) = turns.next(last.take()) {
            assert!(turn.is_alone());
            all.push(turn.pieces.clone());
            last = Some(turn);
        }
        let end = 4 + TOGETHER;
        assert_eq!(all, [0..1, 1..2, 2..3, 3..4, 4..end, end..end + 1]);
        assert_eq!(turns.most_workers(), all.len());
    }

    #[test]
    fn workers_have_files_of_their_own_and_share_only_the_last() {
        let turns = Turns::of(&pieces(&[&[LONG; 3], &[LONG; 2], &[1]]));
        let first = turns.next(None);
        let second = turns.next(None);
        assert_eq!([taken(first.as_ref()), taken(second.as_ref())], [0..1, 3..4]);
        let second = turns.next(second);
        assert_eq!(taken(second.as_ref()), 4..5, "it stays in its file");
        let second = turns.next(second);
        assert_eq!(taken(second.as_ref()), 5..6, "short ones come before a file of another's");
        let second = turns.next(second);
        assert_eq!(taken(second.as_ref()), 1..2);
        assert!(!first.as_ref().unwrap().is_alone());
        assert!(!second.as_ref().unwrap().is_alone());
        assert!(turns.next(first).is_some());
        assert!(turns.next(second).is_none());
    }

    #[test]
    fn who_shares_a_file_leaves_it_for_one_that_nobody_has_begun() {
        let turns = Turns::of(&pieces(&[&[LONG; 3], &[LONG]]));
        let mut left = turns.left();
        let first = left.begin(turns.groups.first().unwrap());
        let second = left.piece_of(0);
        left.next = 1;
        drop(left);
        let first = turns.next(first);
        assert_eq!(taken(first.as_ref()), 3..4);
        assert!(second.unwrap().is_alone(), "the other has left");
    }

    #[test]
    fn after_the_end_there_are_no_turns() {
        let turns = Turns::of(&pieces(&[&[LONG; 3], &[LONG]]));
        let turn = turns.next(None);
        turns.end();
        assert!(turns.next(turn).is_none());
    }
}
