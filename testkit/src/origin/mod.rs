//! A scripted HTTP/1.1 origin on a raw socket. It takes every request to its end, strictly, keeps what
//! came and what was wrong with it, and answers with the actions its script returns.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::framing::{BodyFraming, Chunk, FramingError, Head, chunked, take_chunk};

/// A request as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Counts connections from 0.
    pub connection: usize,
    /// Counts requests of this connection from 0.
    pub index: usize,
    /// Request line and headers.
    pub head: Head,
    /// The body, put together.
    pub body: Vec<u8>,
    /// The body as it was chunked; one piece when it had a length.
    pub chunks: Vec<Vec<u8>>,
    /// False when the connection ended before the request did.
    pub complete: bool,
}

/// What the origin does next. A script is a list of these; after the last one the connection is kept
/// for the next request.
#[derive(Clone, Debug)]
pub enum Action {
    /// Write these bytes.
    Write(Vec<u8>),
    /// Write these bytes in writes of this many bytes.
    WriteSplit(Vec<u8>, usize),
    /// Wait until the test signals. A signal sent before is not lost.
    Wait(Arc<Notify>),
    /// Close the connection.
    Close,
    /// Reset the connection.
    Reset,
    /// Keep the connection and do nothing until the other side leaves.
    Hang,
}

/// What a script may also see: bytes that are wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The connection it came by.
    pub connection: usize,
    /// The requests taken whole from that connection before.
    pub after_requests: usize,
    /// What is wrong.
    pub error: FramingError,
}

type Script = dyn Fn(&Recorded) -> Vec<Action> + Send + Sync;

#[derive(Default)]
struct Seen {
    requests: Vec<Recorded>,
    faults: Vec<Fault>,
    connections: usize,
    open: usize,
    left_early: usize,
}

/// The running origin; dropping it closes all its connections.
pub struct Origin {
    /// Where it listens.
    pub address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    _accepting: JoinSet<()>,
}

impl Origin {
    /// Starts an origin that answers as `script` says, request by request.
    pub async fn start(
        script: impl Fn(&Recorded) -> Vec<Action> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Mutex::new(Seen::default()));
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, Arc::clone(&seen), Arc::new(script)));
        Ok(Self { address, seen, _accepting: accepting })
    }

    /// Starts an origin that answers every request with 200 and this body.
    pub async fn answering(body: &str) -> io::Result<Self> {
        let answer = answer(200, &[], body.as_bytes());
        Self::start(move |_| vec![Action::Write(answer.clone())]).await
    }

    /// `http://` and the address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far, also incomplete ones, in the order they ended.
    pub fn requests(&self) -> Vec<Recorded> {
        self.seen.lock().requests.clone()
    }

    /// What was wrong so far: broken framing, or bytes where no request can begin, such as a second
    /// terminator of a chunked body.
    pub fn faults(&self) -> Vec<Fault> {
        self.seen.lock().faults.clone()
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        self.seen.lock().connections
    }

    /// Connections open now.
    pub fn open_connections(&self) -> usize {
        self.seen.lock().open
    }

    /// Connections whose other side left while a script was still under way.
    pub fn left_early(&self) -> usize {
        self.seen.lock().left_early
    }
}

/// A whole answer with its length, as bytes. `headers` come after Content-Type, which is JSON unless
/// one of them says otherwise.
pub fn answer(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes = answer_head(status, headers);
    bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// A whole chunked answer, cut into chunks of these sizes, as bytes.
pub fn chunked_answer(
    status: u16,
    headers: &[(&str, &str)],
    body: &[u8],
    sizes: &[usize],
) -> Vec<u8> {
    let mut bytes = answer_head(status, headers);
    bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
    bytes.extend_from_slice(&chunked(body, sizes));
    bytes
}

fn answer_head(status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} Status\r\n");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        text.push_str("Content-Type: application/json\r\n");
    }
    for (name, value) in headers {
        text.push_str(name);
        text.push_str(": ");
        text.push_str(value);
        text.push_str("\r\n");
    }
    text.into_bytes()
}

async fn accept(listener: TcpListener, seen: Arc<Mutex<Seen>>, script: Arc<Script>) {
    // Owned by this task, so that all connections end with it.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let number = {
            let mut seen = seen.lock();
            seen.connections += 1;
            seen.open += 1;
            seen.connections - 1
        };
        let connection = Connection {
            number,
            taken: 0,
            stream,
            received: Vec::new(),
            seen: Arc::clone(&seen),
            script: Arc::clone(&script),
        };
        connections.spawn(connection.serve());
        while connections.try_join_next().is_some() {}
    }
}

struct Connection {
    number: usize,
    taken: usize,
    stream: TcpStream,
    received: Vec<u8>,
    seen: Arc<Mutex<Seen>>,
    script: Arc<Script>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.seen.lock().open -= 1;
    }
}

/// Why a connection is served no longer.
struct Over;

impl Connection {
    async fn serve(mut self) {
        // A failure to set it only makes writes arrive together.
        let _ = self.stream.set_nodelay(true);
        while self.serve_one().await.is_ok() {}
    }

    async fn serve_one(&mut self) -> Result<(), Over> {
        let head = match self.head().await {
            Ok(head) => head,
            Err(error) => return Err(self.fault(error)),
        };
        let Some(head) = head else { return Err(Over) };
        let mut request = Recorded {
            connection: self.number,
            index: self.taken,
            head,
            body: Vec::new(),
            chunks: Vec::new(),
            complete: false,
        };
        let taken = self.body(&mut request).await;
        let complete = request.complete;
        self.seen.lock().requests.push(request.clone());
        if let Err(error) = taken {
            return Err(self.fault(error));
        }
        if !complete {
            return Err(Over);
        }
        self.taken += 1;
        for action in (self.script)(&request) {
            self.act(action).await?;
        }
        Ok(())
    }

    fn fault(&self, error: FramingError) -> Over {
        let fault = Fault { connection: self.number, after_requests: self.taken, error };
        self.seen.lock().faults.push(fault);
        Over
    }

    async fn head(&mut self) -> Result<Option<Head>, FramingError> {
        loop {
            // A request begins with its method: anything else here is left over from the last one.
            if self.received.first().is_some_and(|byte| !byte.is_ascii_alphabetic()) {
                let shown =
                    String::from_utf8_lossy(self.received.get(..16).unwrap_or(&self.received));
                return Err(FramingError::Head(shown.into_owned()));
            }
            if let Some(head) = Head::take(&mut self.received)? {
                return Ok(Some(head));
            }
            if !self.receive().await {
                let over = self.received.is_empty();
                let error = FramingError::Head("the connection ended in a head".to_owned());
                return if over { Ok(None) } else { Err(error) };
            }
        }
    }

    async fn body(&mut self, request: &mut Recorded) -> Result<(), FramingError> {
        let framing = request.head.body_framing()?;
        if request.head.header("expect").is_some_and(|e| e.eq_ignore_ascii_case("100-continue")) {
            // Should it fail, reading the body fails too.
            let _ = self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await;
        }
        match framing {
            BodyFraming::Unframed => request.complete = true,
            BodyFraming::Length(length) => {
                while self.received.len() < length && self.receive().await {}
                request.complete = self.received.len() >= length;
                request.body = self.received.drain(..length.min(self.received.len())).collect();
                request.chunks = vec![request.body.clone()];
            }
            BodyFraming::Chunked => loop {
                match take_chunk(&mut self.received)? {
                    Chunk::Content(chunk) => {
                        request.body.extend_from_slice(&chunk);
                        request.chunks.push(chunk);
                    }
                    Chunk::End => {
                        request.complete = true;
                        break;
                    }
                    Chunk::Incomplete if self.receive().await => {}
                    Chunk::Incomplete => break,
                }
            },
        }
        Ok(())
    }

    async fn act(&mut self, action: Action) -> Result<(), Over> {
        match action {
            Action::Write(bytes) => self.write(&bytes).await,
            Action::WriteSplit(bytes, size) => {
                for piece in bytes.chunks(size.max(1)) {
                    self.write(piece).await?;
                    tokio::task::yield_now().await;
                }
                Ok(())
            }
            Action::Wait(signal) => tokio::select! {
                () = signal.notified() => Ok(()),
                () = self.leaving() => Err(self.left()),
            },
            Action::Close => Err(Over),
            Action::Reset => {
                // Closing a socket with a linger of zero sends RST.
                let _ = self.stream.set_zero_linger();
                Err(Over)
            }
            Action::Hang => {
                self.leaving().await;
                Err(self.left())
            }
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Over> {
        match self.stream.write_all(bytes).await {
            Ok(()) => Ok(()),
            Err(_) => Err(self.left()),
        }
    }

    fn left(&self) -> Over {
        self.seen.lock().left_early += 1;
        Over
    }

    /// Returns once the other side has left; what it sends meanwhile is kept.
    async fn leaving(&mut self) {
        while self.receive().await {}
    }

    /// False at the end of the connection.
    async fn receive(&mut self) -> bool {
        matches!(self.stream.read_buf(&mut self.received).await, Ok(count) if count > 0)
    }
}

#[cfg(test)]
mod tests;
