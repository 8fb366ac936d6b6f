//! Bytes put in place of other bytes.

use std::ops::Range;

use bytes::Bytes;

/// One change: `replacement` instead of the bytes in `range`. An empty range inserts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splice {
    /// Where, counted in the unchanged body.
    pub range: Range<usize>,
    /// What stands there afterwards.
    pub replacement: Bytes,
}

impl Splice {
    /// `replacement` in place of `range`.
    pub fn new(range: Range<usize>, replacement: impl Into<Bytes>) -> Self {
        Self { range, replacement: replacement.into() }
    }
}

/// A body in pieces that share memory with the body it was made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rope {
    segments: Vec<Bytes>,
    length: usize,
}

impl Rope {
    /// The pieces in order, none of them empty.
    pub fn segments(&self) -> &[Bytes] {
        &self.segments
    }

    /// The pieces, handed over.
    pub fn into_segments(self) -> Vec<Bytes> {
        self.segments
    }

    /// Bytes in all: the `Content-Length`.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// All of it in one piece: copied, unless it is one piece already.
    pub fn to_bytes(&self) -> Bytes {
        match self.segments.as_slice() {
            [] => Bytes::new(),
            [only] => only.clone(),
            several => several.concat().into(),
        }
    }

    fn push(&mut self, segment: Bytes) {
        if !segment.is_empty() {
            self.length += segment.len();
            self.segments.push(segment);
        }
    }
}

impl From<Bytes> for Rope {
    fn from(body: Bytes) -> Self {
        let mut rope = Self::default();
        rope.push(body);
        rope
    }
}

/// A splice that does not lie in its body, or overlaps another: the spans are those of another body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the change of bytes {}..{} does not fit a body of {length} bytes or another change", range.start, range.end)]
pub struct Misplaced {
    range: Range<usize>,
    length: usize,
}

/// `body` with all `splices` applied, in whatever order they come. Those at the same place keep
/// the order they have here.
pub fn splice(body: &Bytes, splices: Vec<Splice>) -> Result<Rope, Misplaced> {
    let splices = in_order(splices, body.len())?;
    let segments = Vec::with_capacity(2 * splices.len() + 1);
    let mut rope = Rope { segments, length: 0 };
    let mut at = 0;
    for Splice { range, replacement } in splices {
        rope.push(body.slice(at..range.start));
        rope.push(replacement);
        at = range.end;
    }
    rope.push(body.slice(at..));
    Ok(rope)
}

/// The same in one piece, which costs less where the body is short.
pub fn spliced(body: &[u8], splices: Vec<Splice>) -> Result<Bytes, Misplaced> {
    let splices = in_order(splices, body.len())?;
    let added: usize = splices.iter().map(|splice| splice.replacement.len()).sum();
    let removed: usize = splices.iter().map(|splice| splice.range.len()).sum();
    let mut whole = Vec::with_capacity((body.len() + added).saturating_sub(removed));
    let mut at = 0;
    for Splice { range, replacement } in splices {
        whole.extend_from_slice(body.get(at..range.start).unwrap_or_default());
        whole.extend_from_slice(&replacement);
        at = range.end;
    }
    whole.extend_from_slice(body.get(at..).unwrap_or_default());
    Ok(whole.into())
}

/// `splices` from the first to the last, each of which lies in a body of `length` bytes and behind the one before.
fn in_order(mut splices: Vec<Splice>, length: usize) -> Result<Vec<Splice>, Misplaced> {
    splices.sort_by_key(|splice| (splice.range.start, splice.range.end));
    let mut at = 0;
    for Splice { range, .. } in &splices {
        if range.start < at || range.end < range.start || range.end > length {
            return Err(Misplaced { range: range.clone(), length });
        }
        at = range.end;
    }
    Ok(splices)
}
