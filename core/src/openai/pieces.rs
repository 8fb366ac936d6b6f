//! Counts the pieces of a stream as they pass, which may be cut anywhere: what an engine has made so far, where it
//! does not tell.

use memchr::memchr_iter;

use super::Stream;

/// How many pieces of one stream have passed.
#[derive(Clone, Copy, Debug)]
pub struct Pieces {
    stream: Stream,
    count: u64,
    /// The last two bytes that passed: an event's end may be cut.
    last: [u8; 2],
}

impl Pieces {
    /// None yet of such a stream.
    pub fn of(stream: Stream) -> Self {
        Self { stream, count: 0, last: [0; 2] }
    }

    /// The pieces that have passed whole: events, or lines.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Looks at the next bytes.
    pub fn look(&mut self, bytes: &[u8]) {
        let ends = memchr_iter(b'\n', bytes);
        self.count += match self.stream {
            Stream::Lines => ends.count() as u64,
            Stream::Events => ends.filter(|at| self.is_blank(bytes, *at)).count() as u64,
        };
        self.last = [self.before(bytes, bytes.len(), 2), self.before(bytes, bytes.len(), 1)];
    }

    /// Whether the line that ends at `at` is empty, which ends an event.
    fn is_blank(&self, bytes: &[u8], at: usize) -> bool {
        match self.before(bytes, at, 1) {
            b'\n' => true,
            b'\r' => self.before(bytes, at, 2) == b'\n',
            _ => false,
        }
    }

    /// The byte that stands so far (1 or 2) before `at`.
    fn before(&self, bytes: &[u8], at: usize, distance: usize) -> u8 {
        let [second, first] = self.last;
        match at.checked_sub(distance) {
            Some(place) => bytes.get(place).copied().unwrap_or_default(),
            None if distance - at == 1 => first,
            None => second,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_counted_however_they_are_cut_and_their_lines_end() {
        for (stream, text, expected) in [
            (Stream::Events, "data: 1\n\ndata: 2\n\n", 2),
            (Stream::Events, "data: 1\r\n\r\ndata: 2\r\n\r\n", 2),
            (Stream::Events, "event: a\ndata: 1\n\n: a comment\n\ndata: half", 2),
            (Stream::Events, "event: a\r\ndata: \\n\\n\r\n\r\n", 1),
            (Stream::Events, "", 0),
            (Stream::Lines, "{\"a\":1}\n{\"a\":2}\n{\"a\"", 2),
        ] {
            for size in 1..=text.len().max(1) {
                let mut pieces = Pieces::of(stream);
                text.as_bytes().chunks(size).for_each(|piece| pieces.look(piece));
                assert_eq!(pieces.count(), expected, "{text:?} in pieces of {size}");
            }
        }
    }
}
