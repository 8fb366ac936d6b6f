//! HTTP/2 frame by frame, for what no library sends: farewells in the middle of things, floods, headers in
//! pieces. Either side of a connection; SETTINGS and PING are agreed to by themselves.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const ACK: u8 = 1;

/// What a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(pub u8);

impl Kind {
    /// A piece of a body.
    pub const DATA: Self = Self(0);
    /// The headers of a request or an answer, or the beginning of them.
    pub const HEADERS: Self = Self(1);
    /// The end of a stream before its end.
    pub const RST_STREAM: Self = Self(3);
    /// How a side wants to be spoken to.
    pub const SETTINGS: Self = Self(4);
    /// A question whether somebody is there.
    pub const PING: Self = Self(6);
    /// A farewell.
    pub const GOAWAY: Self = Self(7);
    /// Leave to send more.
    pub const WINDOW_UPDATE: Self = Self(8);
    /// More of a stream's headers.
    pub const CONTINUATION: Self = Self(9);
}

/// A frame's flag: nothing more comes of this stream.
pub const END_STREAM: u8 = 1;
/// A frame's flag: nothing more comes of these headers.
pub const END_HEADERS: u8 = 4;

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is for.
    pub kind: Kind,
    /// [`END_STREAM`], [`END_HEADERS`], ACK.
    pub flags: u8,
    /// Its stream; 0 for the connection.
    pub stream: u32,
    /// What it carries.
    pub payload: Vec<u8>,
}

impl Frame {
    /// A frame of any kind.
    pub fn new(kind: Kind, flags: u8, stream: u32, payload: impl Into<Vec<u8>>) -> Self {
        Self { kind, flags, stream, payload: payload.into() }
    }

    /// All headers of a stream.
    pub fn headers(stream: u32, flags: u8, headers: &[(&str, &str)]) -> Self {
        Self::new(Kind::HEADERS, flags | END_HEADERS, stream, block(headers))
    }

    /// A piece of a body.
    pub fn data(stream: u32, flags: u8, bytes: &[u8]) -> Self {
        Self::new(Kind::DATA, flags, stream, bytes)
    }

    /// Ends a stream for this reason.
    pub fn reset(stream: u32, reason: u32) -> Self {
        Self::new(Kind::RST_STREAM, 0, stream, reason.to_be_bytes())
    }

    /// A farewell: streams above `last` were not begun.
    pub fn goaway(last: u32, reason: u32) -> Self {
        let payload = [last.to_be_bytes(), reason.to_be_bytes()].concat();
        Self::new(Kind::GOAWAY, 0, 0, payload)
    }

    /// The stream that a GOAWAY names last.
    pub fn last(&self) -> u32 {
        let last = self.payload.first_chunk().copied().unwrap_or_default();
        u32::from_be_bytes(last)
    }

    /// Whether its stream ends with it.
    pub fn ends(&self) -> bool {
        matches!(self.kind, Kind::DATA | Kind::HEADERS) && self.flags & END_STREAM != 0
    }

    /// As it goes over the wire.
    pub fn bytes(&self) -> Vec<u8> {
        let length = u32::try_from(self.payload.len()).unwrap_or(u32::MAX).to_be_bytes();
        let mut bytes = length.get(1..).unwrap_or_default().to_vec();
        bytes.extend_from_slice(&[self.kind.0, self.flags]);
        bytes.extend_from_slice(&self.stream.to_be_bytes());
        bytes.extend_from_slice(&self.payload);
        bytes
    }
}

/// Headers as HPACK has them, all in plain text and none to be remembered.
pub fn block(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(0);
        for text in [name, value] {
            length(&mut block, text.len());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// A number in HPACK's way, of which seven bits fit into the first byte.
fn length(block: &mut Vec<u8>, number: usize) {
    let Some(mut rest) = number.checked_sub(127) else {
        block.push(u8::try_from(number).unwrap_or_default());
        return;
    };
    block.push(127);
    while rest >= 128 {
        block.push(u8::try_from(rest % 128).unwrap_or_default() | 128);
        rest /= 128;
    }
    block.push(u8::try_from(rest).unwrap_or_default());
}

/// One side of a connection.
#[derive(Debug)]
pub struct Frames {
    stream: TcpStream,
}

impl Frames {
    /// Connects as a client.
    pub async fn connect(address: SocketAddr) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        stream.write_all(PREFACE).await?;
        let mut frames = Self { stream };
        frames.send(&[Frame::new(Kind::SETTINGS, 0, 0, [])]).await?;
        Ok(frames)
    }

    /// Takes a connection as the server.
    pub async fn accept(mut stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let mut preface = vec![0; PREFACE.len()];
        stream.read_exact(&mut preface).await?;
        if preface != PREFACE {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut frames = Self { stream };
        frames.send(&[Frame::new(Kind::SETTINGS, 0, 0, [])]).await?;
        Ok(frames)
    }

    /// Sends frames in one write.
    pub async fn send(&mut self, frames: &[Frame]) -> io::Result<()> {
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::bytes).collect();
        self.stream.write_all(&bytes).await
    }

    /// The next frame but for SETTINGS and PING; nothing at the end of the connection.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            let frame = self.any().await.ok()?;
            match frame.kind {
                Kind::SETTINGS | Kind::PING if frame.flags & ACK == 0 => {
                    let payload = if frame.kind == Kind::PING { frame.payload } else { Vec::new() };
                    // Should it fail, the next frame does not come either.
                    let _ = self.send(&[Frame::new(frame.kind, ACK, 0, payload)]).await;
                }
                Kind::SETTINGS | Kind::PING => {}
                _ => return Some(frame),
            }
        }
    }

    /// The next frame of this kind, past all others; nothing at the end of the connection.
    pub async fn next_of(&mut self, kind: Kind) -> Option<Frame> {
        loop {
            let frame = self.next().await?;
            if frame.kind == kind {
                return Some(frame);
            }
        }
    }

    /// Reads until a stream ends, and says which; nothing at the end of the connection.
    pub async fn ended(&mut self) -> Option<u32> {
        loop {
            let frame = self.next().await?;
            if frame.ends() {
                return Some(frame.stream);
            }
        }
    }

    async fn any(&mut self) -> io::Result<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).await?;
        let [a, b, c, kind, flags, stream @ ..] = head;
        let length = u32::from_be_bytes([0, a, b, c]);
        let mut payload = vec![0; usize::try_from(length).unwrap_or_default()];
        self.stream.read_exact(&mut payload).await?;
        let stream = u32::from_be_bytes(stream) & 0x7fff_ffff;
        Ok(Frame { kind: Kind(kind), flags, stream, payload })
    }
}
