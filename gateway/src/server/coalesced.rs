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
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use pingora_core::protocols::l4::stream::Stream;
use pingora_core::protocols::raw_connect::ProxyDigest;
use pingora_core::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    TimingDigest, UniqueID, UniqueIDType,
};
use tokio::io::{AsyncRead, AsyncWrite, BufWriter, ReadBuf};

use super::refusals;

/// A head and a short answer fit; what is longer is passed through.
const ROOM: usize = 4096;

/// The connection.
#[derive(Debug)]
pub(super) struct Coalesced(BufWriter<Stream>);

impl Coalesced {
    /// Writes to `stream` leave together from now on.
    pub(super) fn new(stream: Stream) -> Self {
        Self(BufWriter::with_capacity(ROOM, stream))
    }
}

impl AsyncRead for Coalesced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.0.buffer().is_empty() {
            // A failure is told by the next write; a socket that is full wakes this task too.
            let _ = Pin::new(&mut self.0).poll_flush(context);
        }
        Pin::new(self.0.get_mut()).poll_read(context, into)
    }
}

impl AsyncWrite for Coalesced {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Some(refusal) = refusals::in_place_of(bytes) else {
            return Pin::new(&mut self.0).poll_write(context, bytes);
        };
        // It fits into the buffer, so that it is taken whole.
        Pin::new(&mut self.0).poll_write(context, &refusal).map_ok(|_| bytes.len())
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }
}

#[async_trait]
impl Shutdown for Coalesced {
    async fn shutdown(&mut self) {
        // A client that is gone cannot be told the rest.
        let _ = tokio::io::AsyncWriteExt::flush(&mut self.0).await;
        Shutdown::shutdown(self.0.get_mut()).await;
    }
}

#[async_trait]
impl Peek for Coalesced {}

impl Ssl for Coalesced {}

impl UniqueID for Coalesced {
    fn id(&self) -> UniqueIDType {
        self.0.get_ref().id()
    }
}

impl GetTimingDigest for Coalesced {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.0.get_ref().get_timing_digest()
    }

    fn get_read_pending_time(&self) -> Duration {
        self.0.get_ref().get_read_pending_time()
    }

    fn get_write_pending_time(&self) -> Duration {
        self.0.get_ref().get_write_pending_time()
    }
}

impl GetProxyDigest for Coalesced {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.0.get_ref().get_proxy_digest()
    }
}

impl GetSocketDigest for Coalesced {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.0.get_ref().get_socket_digest()
    }
}
