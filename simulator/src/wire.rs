//! One TCP connection whose ending and whose writes can be spoilt from inside a request: reset, torn
//! into single bytes, or turned into bytes that are not HTTP.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Not HTTP, and not valid text either.
const GARBAGE: &[u8] = b"\x00\xff\xfe\x15\x03\x01 engine says what? \r\n\r\n\x80\x81";

/// What a request may do to the connection it came by.
#[derive(Debug, Default)]
pub(crate) struct WireFaults {
    reset: AtomicBool,
    one_byte: AtomicBool,
    garbage: AtomicBool,
}

impl WireFaults {
    /// The connection ends with a reset once it is dropped.
    pub(crate) fn end_with_reset(&self) {
        self.reset.store(true, Ordering::SeqCst);
    }

    /// From now on every write takes one byte, or as many as it is given.
    pub(crate) fn tear_writes(&self, one_byte: bool) {
        self.one_byte.store(one_byte, Ordering::SeqCst);
    }

    /// The next write sends garbage in place of what it is given, and ends the connection.
    pub(crate) fn write_garbage(&self) {
        self.garbage.store(true, Ordering::SeqCst);
    }
}

/// A TCP stream that obeys its [`WireFaults`].
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    faults: Arc<WireFaults>,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream, faults: Arc<WireFaults>) -> Self {
        Self { stream, faults }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.faults.reset.load(Ordering::SeqCst) {
            // Closing a socket with a linger of zero sends RST. Should it fail, it is a plain close.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.faults.garbage.load(Ordering::SeqCst) {
            ready!(Pin::new(&mut self.stream).poll_write(context, GARBAGE))?;
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let one_byte = self.faults.one_byte.load(Ordering::SeqCst);
        let bytes = if one_byte { bytes.get(..1).unwrap_or(bytes) } else { bytes };
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.faults.reset.load(Ordering::SeqCst) {
            // A FIN now would make a clean end of what has to look like a reset.
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
