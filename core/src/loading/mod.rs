//! What a flash load copies: which files of a source, in which order and pieces, and whether there is
//! room. Pure: the caller looks at the source and the destination, and does the copying.

mod choice;
mod digest;
mod pace;
pub mod peers;
mod pieces;
pub mod place;
mod room;
#[cfg(test)]
mod tests;
mod unneeded;

pub use choice::Wishes;
pub use digest::named_digest;
pub use pace::Pace;
pub use pieces::Piece;
pub use room::{Room, Shortage};
pub use unneeded::Unneeded;

use std::cmp::Reverse;

use crate::sources::RelativePath;

/// A regular file of the source, links followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where it lies in the source and will lie in the destination.
    pub path: RelativePath,
    /// Its length in bytes.
    pub length: u64,
    /// How many of these bytes are not holes.
    pub stored: u64,
    /// When it was last changed.
    pub modified: Modified,
}

/// When a file was last changed, as its file system has it: seconds since 1970 and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modified {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds of that second.
    pub nanoseconds: i64,
}

/// A regular file that is in the destination already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present {
    /// Its length in bytes.
    pub length: u64,
    /// When it was last changed. A copy bears the time of what it was copied from.
    pub modified: Modified,
}

impl AsRef<Self> for Found {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// What there is to do with files `F`, about each of which is known what `Found` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan<F> {
    /// The files to copy: the largest first, so that no worker is left alone with one at the end, and short
    /// ones as they were found, so that neighbours stay together.
    pub copies: Vec<F>,
    /// The files that the destination holds already.
    pub whole: Vec<F>,
}

/// Up to this length, in bytes, a file is copied in no time: nothing is done for it that takes as long, and its
/// place may say when its turn comes.
pub const SHORT: u64 = 64 << 10;

impl<F: AsRef<Found>> Plan<F> {
    /// Tells the files that have to be copied from those that an earlier run has copied: these have
    /// the length and the time of the source. A copy gets its name only when all of it is there, so
    /// that the two are enough.
    pub fn new(found: Vec<F>, mut present: impl FnMut(&F) -> Option<Present>) -> Self {
        let is_whole = |file: &F| {
            let Found { length, modified, .. } = *file.as_ref();
            present(file) == Some(Present { length, modified })
        };
        let (whole, mut copies) = found.into_iter().partition::<Vec<_>, _>(is_whole);
        let long = |file: &F| Some(file.as_ref().length).filter(|length| *length > SHORT);
        copies.sort_by_key(|file| Reverse(long(file)));
        Self { copies, whole }
    }

    /// The bytes to copy, holes included.
    pub fn length(&self) -> u64 {
        self.copies.iter().map(|file| file.as_ref().length).fold(0, u64::saturating_add)
    }
}
