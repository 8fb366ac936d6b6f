//! A scripted HTTP/1.1 origin on a raw socket. It takes every request to its end, strictly, keeps what
//! came and what was wrong with it, and answers with the actions its script returns.

mod connection;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::framing::{FramingError, Head, chunked};
use crate::head::head;
use connection::accept;

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
    begun: usize,
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
        Self::start_at(Ipv4Addr::LOCALHOST, script).await
    }

    /// The same at an address of this machine that others than this machine reach.
    pub async fn start_at(
        address: Ipv4Addr,
        script: impl Fn(&Recorded) -> Vec<Action> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::start_on(TcpListener::bind((address, 0)).await?, script)
    }

    /// The same where `listener` listens, as an engine does that comes back to its port.
    pub fn start_on(
        listener: TcpListener,
        script: impl Fn(&Recorded) -> Vec<Action> + Send + Sync + 'static,
    ) -> io::Result<Self> {
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

    /// Requests whose head has come, also those whose body has not.
    pub fn begun(&self) -> usize {
        self.seen.lock().begun
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
    head(&format!("HTTP/1.1 {status} Status"), headers)
}

#[cfg(test)]
mod tests;
