//! A raw HTTP/1.1 client: it sends exactly the bytes it is given, cut as it is told, and reports answers
//! with the chunks they came in.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::framing::{BodyFraming, Chunk, FramingError, Head, chunked, take_chunk};
use crate::head::head;

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Status line and headers.
    pub head: Head,
    /// The body, put together.
    pub body: Vec<u8>,
    /// The body as it was chunked; one piece when it was not.
    pub chunks: Vec<Vec<u8>>,
    /// False when the connection ended before the body did.
    pub complete: bool,
}

impl Answer {
    /// The status.
    pub fn status(&self) -> u16 {
        self.head.status()
    }

    /// The body as text; what is not UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; null when it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub enum AnswerError {
    /// The connection ended before a whole head came.
    Ended,
    /// The connection failed, for example by a reset.
    Failed(io::Error),
    /// What came is not HTTP/1.1.
    Framing(FramingError),
}

impl std::fmt::Display for AnswerError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ended => write!(formatter, "the connection ended before an answer"),
            Self::Failed(error) => write!(formatter, "the connection failed: {error}"),
            Self::Framing(error) => write!(formatter, "the answer is not HTTP/1.1: {error}"),
        }
    }
}

impl std::error::Error for AnswerError {}

/// One connection, over whatever carries bytes.
#[derive(Debug)]
pub struct Client<S = TcpStream> {
    stream: S,
    received: Vec<u8>,
}

impl Client {
    /// Connects; small writes are not held back.
    pub async fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self::over(stream))
    }

    /// Leaves with a reset instead of a plain end.
    pub fn reset(self) -> io::Result<()> {
        self.stream.set_zero_linger()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    /// A client over `stream`.
    pub fn over(stream: S) -> Self {
        Self { stream, received: Vec::new() }
    }

    /// Sends these bytes.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Sends these bytes in writes that end at these offsets.
    pub async fn send_cut(&mut self, bytes: &[u8], cuts: &[usize]) -> io::Result<()> {
        let mut rest = bytes;
        let mut sent = 0;
        for cut in cuts {
            let (piece, after) = rest.split_at(cut.saturating_sub(sent).min(rest.len()));
            self.send(piece).await?;
            // The other tasks run between two writes, so that they are read apart where possible.
            tokio::task::yield_now().await;
            sent += piece.len();
            rest = after;
        }
        self.send(rest).await
    }

    /// Sends a POST of JSON with its length.
    pub async fn post(&mut self, path: &str, body: &[u8]) -> io::Result<()> {
        self.send(&request("POST", path, &[], body)).await
    }

    /// Ends the sending side; answers can still be read.
    pub async fn finish_sending(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }

    /// Reads one answer to its end. Answers 100 are skipped.
    pub async fn answer(&mut self) -> Result<Answer, AnswerError> {
        self.answer_to("POST").await
    }

    /// Reads one answer to a request of this method: that to HEAD has no body.
    pub async fn answer_to(&mut self, method: &str) -> Result<Answer, AnswerError> {
        let head = loop {
            let head = self.head().await?;
            if head.status() != 100 {
                break head;
            }
        };
        let framing = head.body_framing().map_err(AnswerError::Framing)?;
        let mut answer = Answer { head, body: Vec::new(), chunks: Vec::new(), complete: true };
        let bodiless = method == "HEAD" || matches!(answer.status(), 204 | 304);
        if !bodiless {
            self.body(framing, &mut answer).await?;
        }
        Ok(answer)
    }

    /// Reads the head of the next answer, also one that is 100.
    pub async fn head(&mut self) -> Result<Head, AnswerError> {
        loop {
            if let Some(head) = Head::take(&mut self.received).map_err(AnswerError::Framing)? {
                return Ok(head);
            }
            if !self.receive().await.map_err(AnswerError::Failed)? {
                return Err(AnswerError::Ended);
            }
        }
    }

    /// The next chunk of a chunked body whose head was read with [`Client::head`]; nothing at its end.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, AnswerError> {
        loop {
            match take_chunk(&mut self.received).map_err(AnswerError::Framing)? {
                Chunk::Content(content) => return Ok(Some(content)),
                Chunk::End => return Ok(None),
                Chunk::Incomplete => {
                    if !self.receive().await.map_err(AnswerError::Failed)? {
                        return Err(AnswerError::Ended);
                    }
                }
            }
        }
    }

    /// Whatever still comes until the connection ends, for at most `bound`; nothing when it stays open.
    pub async fn rest(&mut self, bound: Duration) -> Option<Vec<u8>> {
        let end = async { while matches!(self.receive().await, Ok(true)) {} };
        tokio::time::timeout(bound, end).await.ok()?;
        Some(std::mem::take(&mut self.received))
    }

    /// Bytes that came after the last answer that was read.
    pub fn unread(&self) -> &[u8] {
        &self.received
    }

    async fn body(&mut self, framing: BodyFraming, answer: &mut Answer) -> Result<(), AnswerError> {
        match framing {
            BodyFraming::Chunked => loop {
                match self.chunk().await {
                    Ok(Some(chunk)) => {
                        answer.body.extend_from_slice(&chunk);
                        answer.chunks.push(chunk);
                    }
                    Ok(None) => break,
                    Err(AnswerError::Framing(error)) => return Err(AnswerError::Framing(error)),
                    Err(AnswerError::Ended | AnswerError::Failed(_)) => {
                        answer.complete = false;
                        break;
                    }
                }
            },
            BodyFraming::Length(length) => {
                while self.received.len() < length && answer.complete {
                    answer.complete = self.receive().await.unwrap_or(false);
                }
                let length = length.min(self.received.len());
                answer.body = self.received.drain(..length).collect();
                answer.chunks = vec![answer.body.clone()];
            }
            BodyFraming::Unframed => {
                while self.receive().await.map_err(AnswerError::Failed)? {}
                answer.body = std::mem::take(&mut self.received);
                answer.chunks = vec![answer.body.clone()];
            }
        }
        Ok(())
    }

    /// False at the end of the connection.
    async fn receive(&mut self) -> io::Result<bool> {
        Ok(self.stream.read_buf(&mut self.received).await? > 0)
    }
}

/// A whole request with its length, as bytes to send. `headers` come after Host and Content-Type.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes = request_head(method, path, headers);
    if !body.is_empty() || method != "GET" {
        bytes.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

/// A whole chunked request, cut into chunks of these sizes, as bytes to send.
pub fn chunked_request(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
    sizes: &[usize],
) -> Vec<u8> {
    let mut bytes = request_head(method, path, headers);
    bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
    bytes.extend_from_slice(&chunked(body, sizes));
    bytes
}

fn request_head(method: &str, path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    head(&format!("{method} {path} HTTP/1.1\r\nHost: test"), headers)
}
