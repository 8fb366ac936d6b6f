//! The frames in which messages go by a WebSocket (RFC 6455): gone through as they pass, cut anywhere, and
//! written where the gateway has the last word. Nothing is collected: what is in a message is handed on piece by piece.

/// The longest head of a frame, without a mask.
const LONGEST_HEAD: usize = 10;

/// The first byte: whether it is a message's last frame, whether something was made of its bytes (they are compressed),
/// and of which kind it is; from [`CONTROL`] on no part of a message.
const LAST: u8 = 0x80;
const CHANGED: u8 = 0x70;
const KIND: u8 = 0x0f;
const MORE: u8 = 0;
const TEXT: u8 = 1;
const CONTROL: u8 = 8;
const CLOSE: u8 = 8;

/// The second byte: whether a mask of four bytes follows, and the length or how that is told.
const MASKED: u8 = 0x80;
const LENGTH: u8 = 0x7f;

/// What is found in the bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Some of a message that is text.
    Text(&'a [u8]),
    /// A message, of any kind, has come to its end so many bytes behind the beginning.
    End(usize),
    /// The session's end was told.
    Close,
}

/// Where the bytes that passed ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frames {
    head: [u8; LONGEST_HEAD],
    /// The bytes of `head` that are here.
    here: usize,
    /// The bytes of the frame that are still to come, once its head is whole.
    left: Option<u64>,
    /// Whether the message is text that can be read.
    text: bool,
}

impl Frames {
    /// Tells what is in the next bytes.
    pub fn look(&mut self, bytes: &[u8], mut tell: impl FnMut(Part<'_>)) {
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let Some(left) = self.left else {
                let Some(byte) = rest.first() else { return };
                at += 1;
                self.read_head(*byte);
                continue;
            };
            let length = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
            if length > 0 && self.text && self.kind() < CONTROL {
                tell(Part::Text(rest.get(..length).unwrap_or_default()));
            }
            at += length;
            let left = left - length as u64;
            self.left = Some(left);
            if left > 0 {
                return;
            }
            match self.kind() {
                CLOSE => tell(Part::Close),
                ..CONTROL if self.head[0] & LAST != 0 => tell(Part::End(at)),
                _ => {}
            }
            (self.left, self.here) = (None, 0);
        }
    }

    fn kind(&self) -> u8 {
        self.head[0] & KIND
    }

    fn read_head(&mut self, byte: u8) {
        if let Some(place) = self.head.get_mut(self.here) {
            *place = byte;
        }
        self.here += 1;
        let [first, second, long @ ..] = self.head;
        let length = match (self.here, second & LENGTH) {
            (1, _) => return,
            (4, 126) => u64::from(u16::from_be_bytes([long[0], long[1]])),
            (LONGEST_HEAD, 127) => u64::from_be_bytes(long),
            (_, 126 | 127) => return,
            (_, short) => u64::from(short),
        };
        // Clients mask, and are not read; nor is a server that does.
        let masked = second & MASKED != 0;
        self.left = Some(length.saturating_add(if masked { 4 } else { 0 }));
        if !matches!(self.kind(), MORE | CONTROL..) {
            self.text = self.kind() == TEXT && first & CHANGED == 0 && !masked;
        }
    }
}

/// A server's last words: the message `text`, and the end of the session with `code`, why in a word or two.
pub fn last_words(text: &[u8], code: u16, why: &str) -> Vec<u8> {
    let mut frames = Vec::with_capacity(text.len() + why.len() + 16);
    put(&mut frames, TEXT, text);
    put(&mut frames, CLOSE, &[&code.to_be_bytes(), why.as_bytes()].concat());
    frames
}

fn put(frames: &mut Vec<u8>, kind: u8, content: &[u8]) {
    frames.push(LAST | kind);
    match (u8::try_from(content.len()), u16::try_from(content.len())) {
        (Ok(short @ ..126), _) => frames.push(short),
        (_, Ok(length)) => {
            frames.push(126);
            frames.extend(length.to_be_bytes());
        }
        _ => {
            frames.push(127);
            frames.extend((content.len() as u64).to_be_bytes());
        }
    }
    frames.extend_from_slice(content);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(first: u8, length: usize) -> Vec<u8> {
        let mut frames = Vec::new();
        put(&mut frames, first & KIND, &vec![b'x'; length]);
        frames[0] = first;
        frames
    }

    /// The texts, where messages end, and how often the session's end is told.
    fn read(bytes: &[u8], size: usize) -> (usize, Vec<usize>, usize) {
        let (mut frames, mut text, mut ends) = (Frames::default(), 0, Vec::new());
        let (mut before, mut closes) = (0, 0);
        for piece in bytes.chunks(size) {
            frames.look(piece, |part| match part {
                Part::Text(bytes) => {
                    assert!(bytes.iter().all(|byte| *byte == b'x'));
                    text += bytes.len();
                }
                Part::End(at) => ends.push(before + at),
                Part::Close => closes += 1,
            });
            before += piece.len();
        }
        (text, ends, closes)
    }

    #[test]
    fn messages_are_found_however_they_are_cut() {
        let parts = [
            frame(0x81, 5),
            frame(0x89, 0), // a ping
            frame(0x01, 200),
            frame(0x89, 3),  // a ping between the frames of a message
            frame(0x80, 10), // the rest of it
            frame(0x82, 70_000),
            frame(0x81, 0),
            frame(0xc1, 9), // compressed
            frame(0x81, 126),
            frame(0x88, 2), // the end
        ];
        let ends: Vec<usize> =
            [0, 4, 5, 6, 7, 8].map(|last| parts[..=last].iter().map(Vec::len).sum()).to_vec();
        let bytes = parts.concat();
        for size in [1, 2, 3, 7, 130, 65_536, bytes.len()] {
            assert_eq!(read(&bytes, size), (341, ends.clone(), 1), "in pieces of {size}");
        }
    }

    #[test]
    fn a_length_without_end_is_only_long() {
        let bytes = [&[0x81, 127][..], &[0xff; 8], b"xxx"].concat();
        assert_eq!(read(&bytes, 4), (3, Vec::new(), 0));
        let masked = [0x81, 0x82, 1, 2, 3, 4, 5, 6, 0x81, 1, b'x'];
        assert_eq!(read(&masked, 3), (1, vec![8, 11], 0));
    }

    #[test]
    fn an_end_is_a_frame_and_no_byte_of_another() {
        let end = [0x88, 0x82, 1, 2, 3, 4, 5, 6];
        let looks_so = [0x81, 0x84, 0x88, 0x82, 0x88, 0x80, 0x88, 0x80, 0x88, 0x80];
        for size in [1, 2, 4, 100] {
            assert_eq!(read(&looks_so, size), (0, vec![10], 0));
            assert_eq!(read(&[&looks_so[..], &end].concat(), size), (0, vec![10], 1));
            assert_eq!(read(&[&looks_so[..], &end[..7]].concat(), size), (0, vec![10], 0));
        }
    }

    #[test]
    fn the_last_words_are_a_message_and_an_end() {
        assert_eq!(last_words(b"x", 1008, "no"), [0x81, 1, b'x', 0x88, 4, 0x03, 0xf0, b'n', b'o']);
        for length in [125, 126, 65_535, 65_536] {
            let words = last_words(&vec![b'x'; length], 1008, "no");
            assert_eq!(read(&words, 1000), (length, vec![words.len() - 6], 1), "{length}");
        }
    }
}
