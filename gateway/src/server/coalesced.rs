//! A client's connection whose small writes leave together: an answer's head with the beginning of
//! its body costs one packet and one system call instead of two.
//!
//! Guardrail: nothing that was written may lie here while Pingora waits. It flushes after every part
//! of a body; a head that is still alone is flushed as soon as the client is listened to again,
//! which Pingora does whenever it waits for the engine. So a stream's head leaves before its first
//! event, however late that comes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Buf as _, BytesMut};
use pingora_core::protocols::raw_connect::ProxyDigest;
use pingora_core::protocols::tls::{ALPN, SslDigest};
use pingora_core::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, IO, Peek, Shutdown, SocketDigest, Ssl,
    TimingDigest, UniqueID, UniqueIDType,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf};

use super::refusals;

/// A head and a short answer fit; what is longer is passed through.
const ROOM: usize = 4096;

/// The first room that is made: most heads fit.
const FIRST_ROOM: usize = 1024;

/// The connection, plain or under TLS.
#[derive(Debug)]
pub(super) struct Coalesced<S> {
    stream: S,
    /// Without room while there is nothing in it: a request may wait for long.
    held: BytesMut,
}

impl<S: IO> Coalesced<S> {
    /// Writes to `stream` leave together from now on.
    pub(super) fn new(stream: S) -> Self {
        Self { stream, held: BytesMut::new() }
    }

    fn hold(&mut self, bytes: &[u8]) {
        if self.held.capacity() == 0 {
            self.held.reserve(FIRST_ROOM.max(bytes.len()));
        }
        self.held.extend_from_slice(bytes);
    }

    /// Writes what is held.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.held.is_empty() {
            let sent = ready!(Pin::new(&mut self.stream).poll_write(context, &self.held))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.held.advance(sent);
        }
        self.held = BytesMut::new();
        Poll::Ready(Ok(()))
    }

    /// Whether `length` bytes more are held, once there is room for them.
    fn poll_room(&mut self, context: &mut Context<'_>, length: usize) -> Poll<io::Result<bool>> {
        if self.held.len() + length > ROOM {
            ready!(self.poll_send(context))?;
        }
        Poll::Ready(Ok(length <= ROOM))
    }
}

impl<S: IO> AsyncRead for Coalesced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.held.is_empty() {
            // A failure is told by the next write; a socket that is full wakes this task too.
            let _ = self.as_mut().poll_flush(context);
        }
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: IO> AsyncWrite for Coalesced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let refusal = refusals::in_place_of(bytes);
        let written = refusal.as_deref().unwrap_or(bytes);
        if ready!(self.poll_room(context, written.len()))? {
            self.hold(written);
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = pieces.iter().map(|piece| piece.len()).sum();
        if ready!(self.poll_room(context, length))? {
            for piece in pieces {
                self.hold(piece);
            }
            return Poll::Ready(Ok(length));
        }
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[async_trait]
impl<S: IO> Shutdown for Coalesced<S> {
    async fn shutdown(&mut self) {
        // A client that is gone cannot be told the rest.
        let _ = self.flush().await;
        Shutdown::shutdown(&mut self.stream).await;
    }
}

#[async_trait]
impl<S: IO> Peek for Coalesced<S> {}

impl<S: IO> Ssl for Coalesced<S> {
    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.stream.get_ssl_digest()
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        self.stream.selected_alpn_proto()
    }
}

impl<S: IO> UniqueID for Coalesced<S> {
    fn id(&self) -> UniqueIDType {
        self.stream.id()
    }
}

impl<S: IO> GetTimingDigest for Coalesced<S> {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.stream.get_timing_digest()
    }

    fn get_read_pending_time(&self) -> Duration {
        self.stream.get_read_pending_time()
    }

    fn get_write_pending_time(&self) -> Duration {
        self.stream.get_write_pending_time()
    }
}

impl<S: IO> GetProxyDigest for Coalesced<S> {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.stream.get_proxy_digest()
    }
}

impl<S: IO> GetSocketDigest for Coalesced<S> {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.stream.get_socket_digest()
    }
}
