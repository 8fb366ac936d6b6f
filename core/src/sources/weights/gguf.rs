//! How long a GGUF file must be at least, from what its own header says (versions 2 and 3).

use std::io::{self, Read};

use super::Malformed;

/// The first bytes that every GGUF has.
const MAGIC: [u8; 4] = *b"GGUF";

/// What tensors begin at a multiple of, unless the file says otherwise.
const ALIGNMENT: u64 = 32;

/// Lists in lists beyond this depth are no GGUF.
const DEEPEST: u32 = 8;

/// Whether a file of `length` bytes, read from its beginning by `file`, is whole as far as its
/// header tells. Reads the header only, and holds little of it. The outer error is one of reading.
pub fn check_gguf(file: &mut impl Read, length: u64) -> io::Result<Result<(), Malformed>> {
    let mut header = Header { file, position: 0, alignment: ALIGNMENT };
    match header.described() {
        Ok(described) if described <= length => Ok(Ok(())),
        Ok(described) => Ok(Err(Malformed::OtherLength { length, described })),
        Err(Stop::Malformed(malformed)) => Ok(Err(malformed)),
        Err(Stop::Reading(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Ok(Err(Malformed::TooShort { length }))
        }
        Err(Stop::Reading(error)) => Err(error),
    }
}

enum Stop {
    Malformed(Malformed),
    Reading(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Reading(error)
    }
}

struct Header<'a, R> {
    file: &'a mut R,
    position: u64,
    alignment: u64,
}

impl<R: Read> Header<'_, R> {
    /// The end of the last tensor, or of the header.
    fn described(&mut self) -> Result<u64, Stop> {
        if self.bytes::<4>()? != MAGIC {
            return Err(Stop::Malformed(Malformed::OtherFormat(super::Format::Gguf)));
        }
        if !matches!(self.u32()?, 2 | 3) {
            // The first version and big-endian files are laid out otherwise; the engine judges.
            return Ok(0);
        }
        let (tensors, values) = (self.u64()?, self.u64()?);
        for _ in 0..values {
            self.entry()?;
        }
        let mut end = 0_u64;
        for _ in 0..tensors {
            end = end.max(self.tensor()?);
        }
        if tensors == 0 {
            return Ok(self.position);
        }
        let begin = self.position.checked_next_multiple_of(self.alignment);
        Ok(begin.unwrap_or(u64::MAX).saturating_add(end))
    }

    /// One key and its value; only the alignment matters here.
    fn entry(&mut self) -> Result<(), Stop> {
        const KEY: &[u8] = b"general.alignment";
        let length = self.u64()?;
        let is_alignment = if length == KEY.len() as u64 {
            self.bytes::<{ KEY.len() }>()? == KEY
        } else {
            self.skip(length)?;
            false
        };
        let kind = self.u32()?;
        if is_alignment && kind == 4 {
            self.alignment = u64::from(self.u32()?).max(1);
            return Ok(());
        }
        self.value(kind, 0)
    }

    fn value(&mut self, kind: u32, depth: u32) -> Result<(), Stop> {
        match width(kind) {
            Some(width) => self.skip(width),
            None if kind == 8 => {
                let length = self.u64()?;
                self.skip(length)
            }
            None if kind == 9 && depth < DEEPEST => {
                let (kind, count) = (self.u32()?, self.u64()?);
                if let Some(width) = width(kind) {
                    return self.skip(count.saturating_mul(width));
                }
                for _ in 0..count {
                    self.value(kind, depth + 1)?;
                }
                Ok(())
            }
            None => Err(Stop::Malformed(Malformed::OtherFormat(super::Format::Gguf))),
        }
    }

    /// The end of one tensor, counted from where the tensors begin.
    fn tensor(&mut self) -> Result<u64, Stop> {
        let name = self.u64()?;
        self.skip(name)?;
        let mut elements = 1_u64;
        for _ in 0..self.u32()? {
            elements = elements.saturating_mul(self.u64()?);
        }
        let (kind, offset) = (self.u32()?, self.u64()?);
        Ok(offset.saturating_add(least_size(kind, elements)))
    }

    fn u32(&mut self) -> Result<u32, Stop> {
        Ok(u32::from_le_bytes(self.bytes()?))
    }

    fn u64(&mut self) -> Result<u64, Stop> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes)?;
        self.position = self.position.saturating_add(N as u64);
        Ok(bytes)
    }

    fn skip(&mut self, count: u64) -> Result<(), Stop> {
        let skipped = io::copy(&mut self.file.by_ref().take(count), &mut io::sink())?;
        if skipped < count {
            return Err(Stop::Reading(io::ErrorKind::UnexpectedEof.into()));
        }
        self.position = self.position.saturating_add(count);
        Ok(())
    }
}

/// The bytes of a value of a fixed width.
fn width(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

/// The bytes of `elements` of a tensor type: exact for the common ones, else the least there can
/// be, so that a type that is not known here never makes a whole file look cut.
fn least_size(kind: u32, elements: u64) -> u64 {
    let (block, bytes) = match kind {
        0 => (1, 4),
        1 | 30 => (1, 2),
        2 => (32, 18),
        3 => (32, 20),
        6 => (32, 22),
        7 => (32, 24),
        8 => (32, 34),
        10 => (256, 84),
        11 => (256, 110),
        12 => (256, 144),
        13 => (256, 176),
        14 => (256, 210),
        _ => return u64::from(elements > 0),
    };
    (elements / block).saturating_mul(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with a list of words, an alignment of 64, and two tensors: 4 F32 and 256 `Q4_K`.
    fn file() -> Vec<u8> {
        let text = |file: &mut Vec<u8>, text: &str| {
            file.extend((text.len() as u64).to_le_bytes());
            file.extend(text.as_bytes());
        };
        let mut file = b"GGUF".to_vec();
        file.extend(3_u32.to_le_bytes());
        file.extend(2_u64.to_le_bytes());
        file.extend(3_u64.to_le_bytes());
        text(&mut file, "tokenizer.words");
        file.extend([9_u32, 8].map(u32::to_le_bytes).concat());
        file.extend(2_u64.to_le_bytes());
        text(&mut file, "one");
        text(&mut file, "two");
        text(&mut file, "general.alignment");
        file.extend([4_u32, 64].map(u32::to_le_bytes).concat());
        text(&mut file, "scores");
        file.extend([9_u32, 6].map(u32::to_le_bytes).concat());
        file.extend(2_u64.to_le_bytes());
        file.extend([0; 8]);
        for (name, elements, kind, offset) in [("a", 4_u64, 0_u32, 0_u64), ("b", 256, 12, 64)] {
            text(&mut file, name);
            file.extend(1_u32.to_le_bytes());
            file.extend(elements.to_le_bytes());
            file.extend(kind.to_le_bytes());
            file.extend(offset.to_le_bytes());
        }
        file.resize(file.len().next_multiple_of(64) + 64 + 144, 0);
        file
    }

    fn check(file: &[u8]) -> Result<(), Malformed> {
        check_gguf(&mut &*file, file.len() as u64).unwrap()
    }

    #[test]
    fn load_04_a_gguf_must_hold_all_tensors_that_it_describes() {
        let whole = file();
        check(&whole).unwrap();
        for length in 0..whole.len() {
            assert!(check(&whole[..length]).is_err(), "cut to {length} bytes");
        }
        check(&[whole, vec![0; 31]].concat()).unwrap();
    }

    #[test]
    fn load_04_lengths_and_counts_are_never_believed_beyond_the_file() {
        let whole = file();
        for at in 8..200 {
            let mut hostile = whole.clone();
            hostile[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
            // Whatever it says, it ends, without panic and without memory.
            let _either = check(&hostile);
        }
        let mut nested = b"GGUF\x03\0\0\0".to_vec();
        nested.extend([0_u64, 1, 1].map(u64::to_le_bytes).concat());
        nested.push(b'k');
        for _ in 0..100 {
            nested.extend(9_u32.to_le_bytes());
            if nested.len() > 40 {
                nested.extend(1_u64.to_le_bytes());
            }
        }
        assert!(check(&nested).is_err(), "lists in lists without end");
    }

    #[test]
    fn what_is_no_gguf_or_not_understood_is_told_apart() {
        assert!(check(b"<html><body>Not found</body>").is_err());
        assert!(check(b"").is_err());
        check(b"GGUF\x01\0\0\0anything").unwrap();
        check(b"GGUF\0\0\0\x03anything").unwrap();
        check(&[b"GGUF\x03\0\0\0".as_slice(), &[0; 16]].concat()).unwrap();
    }
}
