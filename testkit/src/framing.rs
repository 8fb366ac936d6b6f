//! HTTP/1.1 messages cut out of bytes, strictly: what is not exactly right is named, not forgiven. Used
//! by the origin for requests and by the client for answers.

use std::fmt;

/// The head of a request or an answer: its first line and its headers, in order and as written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// `POST /v1/chat/completions HTTP/1.1` or `HTTP/1.1 200 OK`.
    pub first_line: String,
    /// Names as written.
    pub headers: Vec<(String, String)>,
}

/// What is wrong with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FramingError {
    /// A line of the head does not end with CRLF, or is no header.
    Head(String),
    /// Two lengths, or a length that is no number.
    Length(String),
    /// A length and a transfer encoding together.
    LengthAndChunked,
    /// A chunk whose size line or end is wrong.
    Chunk(String),
}

impl fmt::Display for FramingError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Head(line) => write!(formatter, "a line of the head is wrong: {line:?}"),
            Self::Length(value) => write!(formatter, "the content length is wrong: {value:?}"),
            Self::LengthAndChunked => {
                write!(formatter, "a content length and a transfer encoding came together")
            }
            Self::Chunk(what) => write!(formatter, "a chunk is wrong: {what:?}"),
        }
    }
}

impl std::error::Error for FramingError {}

/// How the end of a body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// By its length.
    Length(usize),
    /// By a chunk of size 0.
    Chunked,
    /// Neither is given.
    Unframed,
}

impl Head {
    /// The value of the first header of this name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// How many headers of this name there are.
    pub fn count(&self, name: &str) -> usize {
        self.headers.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name)).count()
    }

    /// The first word: a request's method.
    pub fn method(&self) -> &str {
        self.first_line.split(' ').next().unwrap_or("")
    }

    /// The second word: a request's target.
    pub fn target(&self) -> &str {
        self.first_line.split(' ').nth(1).unwrap_or("")
    }

    /// The second word as a number: an answer's status; 0 when it is none.
    pub fn status(&self) -> u16 {
        self.target().parse().unwrap_or(0)
    }

    /// Takes a whole head from the front of `bytes`; nothing when its end has not come yet.
    pub fn take(bytes: &mut Vec<u8>) -> Result<Option<Self>, FramingError> {
        let Some(end) = find(bytes, b"\r\n\r\n") else { return Ok(None) };
        let text: Vec<u8> = bytes.drain(..end + 4).collect();
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut lines = text.trim_end_matches("\r\n").split("\r\n");
        let first_line = lines.next().unwrap_or("").to_owned();
        let mut head = Self { first_line, headers: Vec::new() };
        if head.first_line.contains('\n') || head.first_line.split(' ').count() < 2 {
            return Err(FramingError::Head(head.first_line));
        }
        for line in lines {
            match line.split_once(':') {
                Some((name, value)) if plain_name(name) && !value.contains('\n') => {
                    head.headers.push((name.to_owned(), value.trim().to_owned()));
                }
                _ => return Err(FramingError::Head(line.to_owned())),
            }
        }
        Ok(Some(head))
    }

    /// How the end of the body is told.
    pub fn body_framing(&self) -> Result<BodyFraming, FramingError> {
        let lengths = self.count("content-length");
        let encoding = self.header("transfer-encoding");
        match (self.header("content-length"), encoding) {
            (Some(_), Some(_)) => Err(FramingError::LengthAndChunked),
            (Some(length), None) => {
                let digits = length.bytes().all(|byte| byte.is_ascii_digit());
                match length.parse() {
                    Ok(count) if lengths == 1 && digits => Ok(BodyFraming::Length(count)),
                    _ => Err(FramingError::Length(length.to_owned())),
                }
            }
            (None, Some(coding)) if coding.eq_ignore_ascii_case("chunked") => {
                Ok(BodyFraming::Chunked)
            }
            (None, Some(coding)) => Err(FramingError::Chunk(coding.to_owned())),
            (None, None) => Ok(BodyFraming::Unframed),
        }
    }
}

fn plain_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic())
}

/// One step in taking a chunked body apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// More bytes are needed.
    Incomplete,
    /// The content of one chunk.
    Content(Vec<u8>),
    /// The chunk of size 0 and the empty line; no trailers are understood.
    End,
}

/// Takes one chunk from the front of `bytes`.
pub fn take_chunk(bytes: &mut Vec<u8>) -> Result<Chunk, FramingError> {
    let Some(line_end) = find(bytes, b"\r\n") else {
        return if bytes.len() > 64 { Err(wrong_chunk(bytes)) } else { Ok(Chunk::Incomplete) };
    };
    let line = String::from_utf8_lossy(bytes.get(..line_end).unwrap_or_default()).into_owned();
    let plain = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_hexdigit());
    let size = usize::from_str_radix(&line, 16).ok().filter(|_| plain);
    let Some(size) = size else { return Err(FramingError::Chunk(line)) };
    let start = line_end + 2;
    let whole = start.saturating_add(size).saturating_add(2);
    if bytes.len() < whole {
        return Ok(Chunk::Incomplete);
    }
    let end = bytes.get(whole - 2..whole);
    if end != Some(b"\r\n") {
        return Err(FramingError::Chunk(format!("no end after {size} bytes")));
    }
    let mut chunk: Vec<u8> = bytes.drain(..whole).collect();
    if size == 0 {
        return Ok(Chunk::End);
    }
    chunk.truncate(whole - 2);
    chunk.drain(..start);
    Ok(Chunk::Content(chunk))
}

fn wrong_chunk(bytes: &[u8]) -> FramingError {
    let shown = bytes.get(..32).unwrap_or(bytes);
    FramingError::Chunk(String::from_utf8_lossy(shown).into_owned())
}

/// Writes a body as chunks of these sizes, the rest as one, and the end.
pub fn chunked(body: &[u8], sizes: &[usize]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + 64);
    let mut rest = body;
    for size in sizes.iter().copied().chain([body.len()]) {
        let (chunk, after) = rest.split_at(size.min(rest.len()));
        if !chunk.is_empty() {
            out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            out.extend_from_slice(chunk);
            out.extend_from_slice(b"\r\n");
        }
        rest = after;
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

pub(crate) fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_waits_for_its_end_and_leaves_the_rest() {
        let mut bytes = b"POST /x HTTP/1.1\r\nA: 1\r\n".to_vec();
        assert_eq!(Head::take(&mut bytes), Ok(None));
        bytes.extend_from_slice(b"content-length: 3\r\n\r\nabc");
        let head = Head::take(&mut bytes).unwrap().unwrap();
        assert_eq!((head.method(), head.target(), head.header("a")), ("POST", "/x", Some("1")));
        assert_eq!(head.body_framing(), Ok(BodyFraming::Length(3)));
        assert_eq!(bytes, b"abc");
    }

    #[test]
    fn what_smuggling_needs_is_an_error() {
        let framing = |headers: &str| {
            let mut bytes = format!("POST / HTTP/1.1\r\n{headers}\r\n\r\n").into_bytes();
            Head::take(&mut bytes).and_then(|head| head.unwrap().body_framing())
        };
        assert!(framing("Content-Length: 1\r\nTransfer-Encoding: chunked").is_err());
        assert!(framing("Content-Length: 1\r\nContent-Length: 1").is_err());
        assert!(framing("Content-Length: +1").is_err());
        assert!(framing("Transfer-Encoding: identity, chunked").is_err());
        assert!(framing("Name : value").is_err());
    }

    #[test]
    fn chunks_come_back_as_they_were_cut() {
        let mut bytes = chunked(b"hello world", &[1, 4]);
        let mut chunks = Vec::new();
        loop {
            match take_chunk(&mut bytes).unwrap() {
                Chunk::Content(content) => chunks.push(content),
                Chunk::End => break,
                Chunk::Incomplete => panic!("all of it is there"),
            }
        }
        assert_eq!(chunks, [b"h".to_vec(), b"ello".to_vec(), b" world".to_vec()]);
        assert!(bytes.is_empty());
    }

    #[test]
    fn a_chunk_of_the_wrong_size_is_an_error() {
        assert!(take_chunk(&mut b"2\r\nabc\r\n".to_vec()).is_err());
        assert!(take_chunk(&mut b"+2\r\nab\r\n".to_vec()).is_err());
        assert_eq!(take_chunk(&mut b"3\r\nab".to_vec()), Ok(Chunk::Incomplete));
    }
}
