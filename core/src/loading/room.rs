//! Whether a plan fits where it is to go.

use super::{Found, Plan};

/// A file takes whole pages of memory, or blocks of a disk.
const BLOCK: u64 = 4096;

/// The least that is left free for others.
const LEAST_MARGIN: u64 = 10 << 20;

/// What a plan takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that the copies take, without their holes and without what is there already.
    pub copies: u64,
    /// Bytes that are to stay free beside them: 5 %, and 10 MiB at least.
    pub margin: u64,
}

/// There is not enough room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} MiB are needed ({} to copy, {} to stay free) and {} MiB are free", mebibytes(room.copies.saturating_add(room.margin)), mebibytes(room.copies), mebibytes(room.margin), free >> 20)]
pub struct Shortage {
    /// What is needed.
    pub room: Room,
    /// Bytes that are free.
    pub free: u64,
}

impl<F: AsRef<Found>> Plan<F> {
    /// The room that the copies take. A file that is replaced takes its room twice, for a moment.
    pub fn room(&self) -> Room {
        let copies =
            self.copies.iter().map(|file| taken(file.as_ref())).fold(0, u64::saturating_add);
        let margin = if copies == 0 { 0 } else { LEAST_MARGIN.max(copies / 20) };
        Room { copies, margin }
    }
}

impl Room {
    /// Whether `free` bytes are enough.
    pub fn check(self, free: u64) -> Result<(), Shortage> {
        let enough = self.copies.saturating_add(self.margin) <= free;
        if enough { Ok(()) } else { Err(Shortage { room: self, free }) }
    }
}

fn taken(file: &Found) -> u64 {
    file.stored.checked_next_multiple_of(BLOCK).unwrap_or(u64::MAX)
}

fn mebibytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}
