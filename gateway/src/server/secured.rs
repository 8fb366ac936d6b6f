//! A client's connection under TLS, as Pingora wants to see it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Buf, Bytes};
use pingora_core::protocols::l4::stream::Stream;
use pingora_core::protocols::raw_connect::ProxyDigest;
use pingora_core::protocols::tls::{ALPN, SslDigest};
use pingora_core::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    TimingDigest, UniqueID, UniqueIDType,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

/// How long the last words of a connection may take to leave.
const FAREWELL: Duration = Duration::from_secs(5);

/// The connection, its handshake done.
#[derive(Debug)]
pub(super) struct Secured {
    stream: TlsStream<Stream>,
    /// What was read already, to be read again.
    ahead: Bytes,
    digest: Arc<SslDigest>,
}

impl Secured {
    pub(super) fn new(stream: TlsStream<Stream>) -> Self {
        let (_, connection) = stream.get_ref();
        let cipher = connection
            .negotiated_cipher_suite()
            .and_then(|suite| suite.suite().as_str())
            .unwrap_or_default();
        let version =
            connection.protocol_version().and_then(|version| version.as_str()).unwrap_or_default();
        // Clients show no certificates.
        let digest = Arc::new(SslDigest::new(cipher, version, None, None, Vec::new()));
        Self { stream, ahead: Bytes::new(), digest }
    }

    /// Whether both sides have agreed on HTTP/2.
    pub(super) fn speaks_http2(&self) -> bool {
        let (_, connection) = self.stream.get_ref();
        connection.alpn_protocol() == Some(b"h2")
    }

    /// Waits for the first `length` bytes without taking them.
    pub(super) async fn wait_for(&mut self, length: usize) -> io::Result<()> {
        let mut first = vec![0; length];
        self.stream.read_exact(&mut first).await?;
        self.ahead = first.into();
        Ok(())
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, into);
        }
        let length = self.ahead.len().min(into.remaining());
        into.put_slice(self.ahead.get(..length).unwrap_or_default());
        self.ahead.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Secured {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[async_trait]
impl Shutdown for Secured {
    async fn shutdown(&mut self) {
        // A client that reads nothing any more must not keep the connection; one that is gone cannot be
        // told that it ends.
        let _ = timeout(FAREWELL, AsyncWriteExt::shutdown(&mut self.stream)).await;
    }
}

#[async_trait]
impl Peek for Secured {}

impl Ssl for Secured {
    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        Some(Arc::clone(&self.digest))
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        Some(if self.speaks_http2() { ALPN::H2 } else { ALPN::H1 })
    }
}

impl Secured {
    fn socket(&self) -> &Stream {
        self.stream.get_ref().0
    }
}

impl UniqueID for Secured {
    fn id(&self) -> UniqueIDType {
        self.socket().id()
    }
}

impl GetTimingDigest for Secured {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.socket().get_timing_digest()
    }

    fn get_read_pending_time(&self) -> Duration {
        self.socket().get_read_pending_time()
    }

    fn get_write_pending_time(&self) -> Duration {
        self.socket().get_write_pending_time()
    }
}

impl GetProxyDigest for Secured {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.socket().get_proxy_digest()
    }
}

impl GetSocketDigest for Secured {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.socket().get_socket_digest()
    }
}
