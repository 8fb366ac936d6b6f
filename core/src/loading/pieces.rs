//! Cuts the files of a plan into pieces, so that many workers share a large one.

use std::num::NonZeroU64;

use super::{Found, Plan};

/// One range of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which of the plan's copies.
    pub file: usize,
    /// Where it begins.
    pub from: u64,
    /// How many bytes; none for an empty file.
    pub length: u64,
}

impl<F: AsRef<Found>> Plan<F> {
    /// The pieces of all copies, each of at most `longest` bytes, file by file in their order. Each
    /// file has one at least.
    pub fn pieces(&self, longest: NonZeroU64) -> Vec<Piece> {
        let longest = longest.get();
        let mut pieces = Vec::with_capacity(self.copies.len());
        for (file, found) in self.copies.iter().map(F::as_ref).enumerate() {
            let mut from = 0;
            loop {
                let length = longest.min(found.length - from);
                pieces.push(Piece { file, from, length });
                from += length;
                if from == found.length {
                    break;
                }
            }
        }
        pieces
    }
}
