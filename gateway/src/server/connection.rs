//! Accepts connections and finds out which protocol each of them speaks.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use pingora_core::apps::{HttpServerApp, ServerApp};
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::l4::stream::Stream;
use pingora_core::protocols::{GetSocketDigest, SocketDigest};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tracing::{debug, warn};

use super::coalesced::Coalesced;
use super::conversation::Conversation;

/// How long a new connection may stay silent.
const FIRST_BYTE_LIMIT: Duration = Duration::from_secs(60);

/// How long a connection may take for a whole head, the wait for it included.
const KEEPALIVE: Duration = Duration::from_secs(75);

/// The pause after an accept that failed (out of descriptors, mostly), so as not to spin.
const AFTER_FAILED_ACCEPT: Duration = Duration::from_millis(50);

/// No HTTP/1 method begins like HTTP/2's preface.
const HTTP2_BEGINS: &[u8] = b"PRI";

/// Accepts until it is `enough`; every connection gets a task of its own, and looks at `stopping`.
pub(super) async fn accept<A>(
    listener: TcpListener,
    app: Arc<A>,
    stopping: watch::Receiver<bool>,
    mut enough: watch::Receiver<bool>,
) where
    A: HttpServerApp + Send + Sync + 'static,
{
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = enough.wait_for(|enough| *enough) => return,
        };
        match accepted {
            Ok((socket, client)) => {
                tokio::spawn(serve(socket, client, Arc::clone(&app), stopping.clone()));
            }
            Err(error) => {
                warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(AFTER_FAILED_ACCEPT).await;
            }
        }
    }
}

async fn serve<A>(
    socket: TcpStream,
    client: SocketAddr,
    app: Arc<A>,
    stopping: watch::Receiver<bool>,
) where
    A: HttpServerApp + Send + Sync + 'static,
{
    // Small events must leave at once; a socket that refuses is only slower.
    let _ = socket.set_nodelay(true);
    let http2 = match tokio::time::timeout(FIRST_BYTE_LIMIT, speaks_http2(&socket)).await {
        Ok(Ok(http2)) => http2,
        Ok(Err(error)) => {
            return debug!(%error, %client, "a connection ended before its first byte");
        }
        Err(_) => return debug!(%client, "a connection stayed silent"),
    };
    let stream = labelled(socket, client);
    if http2 {
        app.process_new(Box::new(stream), &stopping).await;
        return;
    }
    let conversation = Conversation::new();
    let talk = converse(stream, &app, &stopping, &conversation);
    if !Arc::clone(&conversation).over(KEEPALIVE, talk).await {
        debug!(%client, limit = ?KEEPALIVE, "a connection was closed that sent no whole request head");
    }
}

/// Serves one HTTP/1 request after another.
async fn converse<A>(
    stream: Stream,
    app: &Arc<A>,
    stopping: &watch::Receiver<bool>,
    conversation: &Conversation,
) where
    A: HttpServerApp + Send + Sync + 'static,
{
    let mut session = ServerSession::new_http1(Box::new(Coalesced::new(stream)));
    // Kept without a limit as far as Pingora knows, which would set a timer for each request.
    session.set_keepalive(Some(0));
    session.set_pipelining_enabled(true);
    conversation.heads.wait();
    let mut kept = app.process_new_http(session, stopping).await;
    while let Some(reused) = kept {
        let (stream, settings) = reused.consume();
        let mut session = ServerSession::new_http1(stream);
        if let Some(settings) = settings {
            settings.apply_to_session(&mut session);
        }
        conversation.heads.wait();
        kept = app.process_new_http(session, stopping).await;
    }
}

/// Looks at the first bytes without taking them. Pingora's own look waits for 24 bytes, which a short
/// request never sends.
async fn speaks_http2(socket: &TcpStream) -> io::Result<bool> {
    let mut first = [0; HTTP2_BEGINS.len()];
    loop {
        let seen = socket.peek(&mut first).await?;
        let begun = first.get(..seen).unwrap_or_default();
        if seen == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if seen == first.len() || !HTTP2_BEGINS.starts_with(begun) {
            return Ok(begun == HTTP2_BEGINS);
        }
        // A lone `P`: the peek returns at once from now on, and there is no way to wait for more.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn labelled(socket: TcpStream, client: SocketAddr) -> Stream {
    let mut stream = Stream::from(socket);
    let digest = SocketDigest::from_raw_fd(stream.as_raw_fd());
    // The cell is new, so this cannot be refused; without it the address is asked of the kernel.
    let _ = digest.peer_addr.set(Some(client.into()));
    stream.set_socket_digest(digest);
    stream
}
