//! What the system is told about the pages of the source. It is only advice: without it everything is right and
//! slower, or takes more memory.

use std::fs::File;

use flexinfer_core::loading::Piece;

/// The piece will be read from its beginning to its end.
pub(super) fn read_ahead(source: &File, piece: &Piece) {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{Advice, fadvise};
        let length = std::num::NonZeroU64::new(piece.length);
        let _advised = fadvise(source, piece.from, length, Advice::Sequential);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (source, piece);
}

/// What was copied is not wanted any more: the memory is needed for the copy.
pub(super) fn forget(source: &File, at: u64, length: u64) {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{Advice, fadvise};
        let length = std::num::NonZeroU64::new(length);
        let _advised = fadvise(source, at, length, Advice::DontNeed);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (source, at, length);
}
