//! A quick reading of JSON: values are passed over with no more than a look at their grammar, and text,
//! which is most of every request, many bytes at a time.
//!
//! Guardrail: what is skimmed, serde_json would skip over too. Whatever is unusual is given up on (`None`):
//! keys with escapes, deep nesting, every mistake. serde_json reads it then, and has the words for what
//! is wrong with it.

#[cfg(test)]
mod tests;

use std::ops::Range;

use memchr::memchr2;

/// The deepest nesting inside the outermost object: one bit each.
const DEEPEST: u32 = u128::BITS - 1;

/// A place in a JSON text.
pub(super) struct Skimmer<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> Skimmer<'a> {
    /// The beginning of `text`.
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { rest: text, length: text.len() }
    }

    /// How many bytes were passed.
    pub(super) fn at(&self) -> usize {
        self.length - self.rest.len()
    }

    /// Whether nothing but blanks is left.
    pub(super) fn at_end(&mut self) -> bool {
        self.blank();
        self.rest.is_empty()
    }

    /// Passes an object that begins here, and shows each key with the place of its value to `look`, which
    /// may give up.
    pub(super) fn object(
        &mut self,
        mut look: impl FnMut(&'a [u8], Range<usize>) -> Option<()>,
    ) -> Option<()> {
        self.blank();
        self.expect(b'{')?;
        self.blank();
        if self.passes(b'}') {
            return Some(());
        }
        loop {
            let key = self.key()?;
            if key.contains(&b'\\') {
                return None;
            }
            self.blank();
            let start = self.at();
            self.value()?;
            look(key, start..self.at())?;
            self.blank();
            match self.next()? {
                b',' => self.blank(),
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    /// Passes one value of any kind.
    fn value(&mut self) -> Option<()> {
        // Which of the open brackets are braces, the innermost one in the lowest bit.
        let (mut braces, mut depth) = (0_u128, 0_u32);
        loop {
            match self.next()? {
                opened @ (b'{' | b'[') => {
                    let brace = opened == b'{';
                    self.blank();
                    if !self.passes(if brace { b'}' } else { b']' }) {
                        if depth == DEEPEST {
                            return None;
                        }
                        (braces, depth) = (braces << 1 | u128::from(brace), depth + 1);
                        self.before_value(brace)?;
                        continue;
                    }
                }
                begun => self.plain(begun)?,
            }
            // A value is over, and with it all that end here.
            loop {
                if depth == 0 {
                    return Some(());
                }
                let brace = braces & 1 == 1;
                self.blank();
                match (self.next()?, brace) {
                    (b',', _) => {
                        self.blank();
                        self.before_value(brace)?;
                        break;
                    }
                    (b'}', true) | (b']', false) => (braces, depth) = (braces >> 1, depth - 1),
                    _ => return None,
                }
            }
        }
    }

    /// What stands before a value: its key, where there is one.
    fn before_value(&mut self, keyed: bool) -> Option<()> {
        if keyed {
            self.key()?;
            self.blank();
        }
        Some(())
    }

    /// A key and its colon.
    fn key(&mut self) -> Option<&'a [u8]> {
        self.expect(b'"')?;
        let key = self.string()?;
        self.blank();
        self.expect(b':')?;
        Some(key)
    }

    /// What has no brackets, after its first byte.
    fn plain(&mut self, begun: u8) -> Option<()> {
        match begun {
            b'"' => self.string().map(drop),
            b't' => self.word(b"rue"),
            b'f' => self.word(b"alse"),
            b'n' => self.word(b"ull"),
            b'-' | b'0'..=b'9' => self.number(begun),
            _ => None,
        }
    }

    /// The content of a string whose opening quote was passed, its escapes as they are.
    fn string(&mut self) -> Option<&'a [u8]> {
        let text = self.rest;
        loop {
            let stop = memchr2(b'"', b'\\', self.rest)?;
            let (before, from_stop) = self.rest.split_at_checked(stop)?;
            // Without an early end, so that it is done for many bytes at a time.
            if before.iter().fold(u8::MAX, |least, byte| least.min(*byte)) < b' ' {
                return None;
            }
            let (stop, after) = from_stop.split_first()?;
            self.rest = after;
            if *stop == b'"' {
                return text.get(..text.len() - after.len() - 1);
            }
            self.escape()?;
        }
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Option<()> {
        match self.next()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(()),
            b'u' => {
                let (digits, after) = self.rest.split_at_checked(4)?;
                self.rest = after;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(())
            }
            _ => None,
        }
    }

    fn number(&mut self, begun: u8) -> Option<()> {
        let first = if begun == b'-' { self.next()? } else { begun };
        match first {
            b'0' => {}
            b'1'..=b'9' => drop(self.digits()),
            _ => return None,
        }
        if self.passes(b'.') {
            self.digits()?;
        }
        if self.passes(b'e') || self.passes(b'E') {
            let _signed = self.passes(b'+') || self.passes(b'-');
            self.digits()?;
        }
        Some(())
    }

    /// Digits, at least one of them.
    fn digits(&mut self) -> Option<()> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.rest = self.rest.get(digits..)?;
        (digits > 0).then_some(())
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(word)?;
        Some(())
    }

    fn blank(&mut self) {
        while let [b' ' | b'\t' | b'\n' | b'\r', after @ ..] = self.rest {
            self.rest = after;
        }
    }

    fn next(&mut self) -> Option<u8> {
        let (first, after) = self.rest.split_first()?;
        self.rest = after;
        Some(*first)
    }

    fn passes(&mut self, wanted: u8) -> bool {
        let after = self.rest.strip_prefix(&[wanted]);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        self.passes(wanted).then_some(())
    }
}
