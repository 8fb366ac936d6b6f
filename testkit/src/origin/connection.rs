//! One connection of the origin: takes requests to their end and carries out the script.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{Action, Fault, Recorded, Script, Seen};
use crate::framing::{BodyFraming, Chunk, FramingError, Head, take_chunk};

pub(super) async fn accept(listener: TcpListener, seen: Arc<Mutex<Seen>>, script: Arc<Script>) {
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
        self.seen.lock().begun += 1;
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
            if let Some(error) = left_over(&self.received) {
                return Err(error);
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
            Action::Close => Err(self.closing()),
            Action::Reset => {
                self.closing();
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

    /// The last look at what came after the request that is answered.
    fn closing(&self) -> Over {
        match left_over(&self.received) {
            Some(error) => self.fault(error),
            None => Over,
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

/// A request begins with its method: anything else is left over from the last one.
fn left_over(received: &[u8]) -> Option<FramingError> {
    let wrong = received.first().is_some_and(|byte| !byte.is_ascii_alphabetic());
    let shown = String::from_utf8_lossy(received.get(..16).unwrap_or(received));
    wrong.then(|| FramingError::Head(shown.into_owned()))
}
