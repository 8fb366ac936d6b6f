//! The lines that divide a form into parts.

use memchr::memmem::Finder;

use crate::openai::content_type::Boundary;

pub(super) const LINE_END: &[u8] = b"\r\n";
/// What the closing delimiter has behind the boundary.
pub(super) const CLOSING: &[u8] = b"--";
/// The most blanks that may follow a boundary on its line.
const MOST_PADDING: usize = 64;

/// `CRLF--boundary`, with which every delimiter line begins. The first has no line end before it
/// but the one that the scanner puts there.
#[derive(Debug)]
pub(super) struct Delimiter {
    finder: Finder<'static>,
}

/// What stands where a boundary was found.
pub(super) enum Line {
    /// A delimiter; its line's text, without the line end, is this long.
    Delimiter(usize),
    Closing,
    /// Bytes of the part that look like one.
    Data,
    /// More bytes have to arrive to tell.
    Undecided,
}

impl Delimiter {
    pub(super) fn of(boundary: &Boundary) -> Self {
        let text = format!("\r\n--{}", boundary.as_str());
        Self { finder: Finder::new(text.as_bytes()).into_owned() }
    }

    /// Its length in bytes.
    pub(super) fn len(&self) -> usize {
        self.finder.needle().len()
    }

    /// Where the next delimiter begins, or the first byte that may yet turn out to begin one.
    pub(super) fn next(&self, rest: &[u8]) -> (usize, Line) {
        let delimiter = self.len();
        let mut from = 0;
        while let Some(found) = self.finder.find(rest.get(from..).unwrap_or_default()) {
            let at = from + found;
            match line(rest.get(at + delimiter..).unwrap_or_default()) {
                Line::Delimiter(padding) => return (at, Line::Delimiter(delimiter + padding)),
                Line::Data => from = at + LINE_END.len(),
                decided => return (at, decided),
            }
        }
        let undecided = rest.len().saturating_sub(delimiter - 1).max(from);
        (undecided, Line::Undecided)
    }
}

/// What the bytes after `CRLF--boundary` make of it.
fn line(after: &[u8]) -> Line {
    let padding = after.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let rest = after.get(padding..).unwrap_or_default();
    match rest {
        _ if after.starts_with(CLOSING) => Line::Closing,
        _ if padding > MOST_PADDING => Line::Data,
        [b'\r', b'\n', ..] => Line::Delimiter(padding),
        [] | [b'\r'] => Line::Undecided,
        [b'-'] if padding == 0 => Line::Undecided,
        _ => Line::Data,
    }
}
