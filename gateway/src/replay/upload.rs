//! A body cut into the pieces that are handed to Pingora, one at a time.

use bytes::{Bytes, BytesMut};
use flexinfer_core::rewriting::{Misplaced, Rope, Splice, splice, spliced};

/// Below this, one copy costs less than one more write to a socket.
const JOINED_BELOW: usize = 64 * 1024;

/// The most that is handed over at once. Between two pieces the engine's answer is looked at, so that an
/// engine that refuses a long body early is heard.
const PIECE: usize = 256 * 1024;

/// A body's bytes in order. Cloning copies no body bytes.
#[derive(Clone, Debug, Default)]
pub struct Upload {
    pieces: Vec<Bytes>,
    length: usize,
}

impl Upload {
    /// The bytes of `segments`, one after another.
    pub fn new(segments: impl IntoIterator<Item = Bytes>) -> Self {
        let segments: Vec<Bytes> = segments.into_iter().filter(|part| !part.is_empty()).collect();
        let length = segments.iter().map(Bytes::len).sum();
        Self::of(segments, length)
    }

    fn of(segments: Vec<Bytes>, length: usize) -> Self {
        let pieces = if segments.len() > 1 && length <= JOINED_BELOW {
            vec![joined(&segments, length)]
        } else {
            segments.into_iter().flat_map(cut).collect()
        };
        Self { pieces, length }
    }

    /// `body` with all `splices` applied.
    pub fn spliced(body: &Bytes, splices: Vec<Splice>) -> Result<Self, Misplaced> {
        if splices.is_empty() {
            return Ok(Self::from(body.clone()));
        }
        if body.len() <= JOINED_BELOW {
            return spliced(body, splices).map(Self::from);
        }
        splice(body, splices).map(Self::from)
    }

    /// How many bytes there are in all.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there is not a single byte.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The pieces, none of them empty.
    pub fn pieces(&self) -> &[Bytes] {
        &self.pieces
    }
}

impl From<Rope> for Upload {
    fn from(rope: Rope) -> Self {
        let length = rope.len();
        Self::of(rope.into_segments(), length)
    }
}

impl From<Bytes> for Upload {
    fn from(body: Bytes) -> Self {
        let length = body.len();
        let pieces = if body.is_empty() { Vec::new() } else { cut(body) };
        Self { pieces, length }
    }
}

fn joined(segments: &[Bytes], length: usize) -> Bytes {
    let mut whole = BytesMut::with_capacity(length);
    for segment in segments {
        whole.extend_from_slice(segment);
    }
    whole.freeze()
}

fn cut(mut segment: Bytes) -> Vec<Bytes> {
    let mut pieces = Vec::with_capacity(segment.len().div_ceil(PIECE));
    while segment.len() > PIECE {
        pieces.push(segment.split_to(PIECE));
    }
    pieces.push(segment);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(upload: &Upload) -> Vec<u8> {
        upload.pieces().concat()
    }

    #[test]
    fn small_bodies_are_one_piece() {
        let upload =
            Upload::new([Bytes::from("{\"model\":"), Bytes::from("\"x\""), Bytes::from("}")]);
        assert_eq!(upload.pieces().len(), 1);
        assert_eq!(bytes(&upload), b"{\"model\":\"x\"}");
    }

    #[test]
    fn long_bodies_are_cut_without_losing_a_byte() {
        let whole: Vec<u8> =
            (0..3 * PIECE + 17).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let upload = Upload::from(Bytes::from(whole.clone()));
        assert_eq!(upload.len(), whole.len());
        assert_eq!(upload.pieces().len(), 4);
        assert!(upload.pieces().iter().all(|piece| !piece.is_empty() && piece.len() <= PIECE));
        assert_eq!(bytes(&upload), whole);
    }

    #[test]
    fn nothing_has_no_pieces() {
        let upload = Upload::new([Bytes::new(), Bytes::new()]);
        assert!(upload.is_empty());
        assert!(upload.pieces().is_empty());
    }
}
