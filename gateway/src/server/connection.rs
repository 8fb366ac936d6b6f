//! Accepts connections and finds out which protocol each of them speaks.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use pingora_core::apps::{HttpServerApp, ServerApp};
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::l4::stream::Stream;
use pingora_core::protocols::{GetSocketDigest, IO, SocketDigest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;
use tracing::{debug, warn};

use super::coalesced::Coalesced;
use super::conversation::Conversation;
use super::lanes::{self, Lane};
use super::listener::BACKLOG;
use super::refusals;
use super::secured::Secured;
use crate::tls::Certificates;

/// How long a new connection may stay silent, or take to say that it speaks HTTP/2.
const FIRST_BYTE_LIMIT: Duration = Duration::from_secs(60);

/// How long both sides may take to agree on TLS.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(20);

/// How long a connection may take for a whole head, the wait for it included.
pub(super) const KEEPALIVE: Duration = Duration::from_secs(75);

/// The pause after an accept that failed (out of descriptors, mostly), so as not to spin.
const AFTER_FAILED_ACCEPT: Duration = Duration::from_millis(50);

/// How long until it is looked again whether more of a preface has come: a peek returns at once as soon as
/// any of it is there, and there is no way to wait for more.
const BETWEEN_PEEKS: Duration = Duration::from_millis(2);

/// No HTTP/1 method begins like HTTP/2's preface.
const HTTP2_BEGINS: &[u8] = b"PRI";

/// The length of HTTP/2's preface. Whatever comes after it is under the limits of HTTP/2's own code.
const HTTP2_PREFACE: usize = 24;

/// Every handshake of TLS begins so.
const TLS_BEGINS: u8 = 0x16;

/// What connections are served with.
pub(super) struct Service<A> {
    /// The threads that serve plain HTTP/1, each connection on one of them.
    pub(super) lanes: Vec<Lane<A>>,
    /// What serves the others: one connection of HTTP/2 may be all that a proxy in front has, and keep more
    /// than one thread busy.
    pub(super) app: Arc<A>,
    /// Where it does.
    pub(super) runtime: Handle,
    /// Without them connections are plain.
    pub(super) certificates: Option<Arc<Certificates>>,
    /// Whether connections that wait for their next request are to be closed.
    pub(super) stopping: watch::Receiver<bool>,
    /// The tasks of connections, from when they were accepted to their end.
    pub(super) connections: TaskTracker,
}

/// A connection that no runtime watches.
struct Accepted {
    socket: std::net::TcpStream,
    client: SocketAddr,
}

impl Accepted {
    fn new(socket: std::net::TcpStream, client: SocketAddr) -> Self {
        // Small events must leave at once; a socket that refuses is only slower.
        let _ = socket.set_nodelay(true);
        Self { socket, client }
    }
}

/// Accepts until it is `enough`; every connection gets a task of its own.
pub(super) async fn accept<A>(
    listener: TcpListener,
    service: Arc<Service<A>>,
    mut enough: watch::Receiver<bool>,
) where
    A: HttpServerApp + Send + Sync + 'static,
{
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted
                .and_then(|(socket, client)| Ok(Accepted::new(socket.into_std()?, client))),
            _ = enough.wait_for(|enough| *enough) => break,
        };
        match accepted {
            Ok(accepted) => place(accepted, Arc::clone(&service)),
            Err(error) => {
                warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(AFTER_FAILED_ACCEPT).await;
            }
        }
    }
    // A successor has the same listener, and takes those that are left.
    if *service.stopping.borrow()
        && let Err(error) = accept_the_rest(listener, &service)
    {
        debug!(%error, "connections that were not accepted yet are reset");
    }
}

/// Accepts whom the system has let in already: they would be reset when the listener closes.
fn accept_the_rest<A>(listener: TcpListener, service: &Arc<Service<A>>) -> io::Result<()>
where
    A: HttpServerApp + Send + Sync + 'static,
{
    // Asked without the runtime, which may not have heard of them yet.
    let listener = listener.into_std()?;
    for _ in 0..BACKLOG {
        match listener.accept() {
            Ok((socket, client)) => {
                socket.set_nonblocking(true)?;
                place(Accepted::new(socket, client), Arc::clone(service));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Gives a connection its thread. Under TLS nobody knows yet which protocol it will speak.
fn place<A>(accepted: Accepted, service: Arc<Service<A>>)
where
    A: HttpServerApp + Send + Sync + 'static,
{
    let client = accepted.client;
    let told = move |served: io::Result<()>| {
        if let Err(error) = served {
            debug!(%error, %client, "a connection ended before its first request");
        }
    };
    if let Some(certificates) = service.certificates.clone() {
        let connections = service.connections.clone();
        let serving = async move { told(secured(accepted, &service, &certificates).await) };
        tokio::spawn(connections.track_future(serving));
        return;
    }
    let lane = lanes::emptiest(&service.lanes);
    let app = Arc::clone(lane.map_or(&service.app, |lane| &lane.app));
    let serving = Arc::clone(&service);
    let serving = async move { told(plain(accepted, &app, serving).await) };
    let serving = service.connections.track_future(serving);
    match lane {
        Some(lane) => lane.serve(serving),
        None => drop(tokio::spawn(serving)),
    }
}

/// Serves a connection without TLS; an error is one before the first request.
async fn plain<A>(accepted: Accepted, app: &Arc<A>, service: Arc<Service<A>>) -> io::Result<()>
where
    A: HttpServerApp + Send + Sync + 'static,
{
    let Accepted { socket, client } = accepted;
    let socket = TcpStream::from_std(socket)?;
    if !timeout(FIRST_BYTE_LIMIT, speaks_http2(&socket)).await?? {
        http1(labelled(socket, client), client, app, &service.stopping).await;
        return Ok(());
    }
    let socket = socket.into_std()?;
    let (runtime, connections) = (service.runtime.clone(), service.connections.clone());
    runtime.spawn(connections.track_future(async move {
        match TcpStream::from_std(socket) {
            Ok(socket) => {
                let stream = Box::new(labelled(socket, client));
                service.app.process_new(stream, &service.stopping).await;
            }
            Err(error) => debug!(%error, %client, "a connection could not be moved"),
        }
    }));
    Ok(())
}

/// The same under TLS.
async fn secured<A>(
    accepted: Accepted,
    service: &Service<A>,
    certificates: &Certificates,
) -> io::Result<()>
where
    A: HttpServerApp + Send + Sync + 'static,
{
    let Accepted { socket, client } = accepted;
    let socket = TcpStream::from_std(socket)?;
    let mut first = [0];
    timeout(FIRST_BYTE_LIMIT, socket.peek(&mut first)).await??;
    if first != [TLS_BEGINS] {
        return refuse_plain(socket).await;
    }
    let handshake = certificates.acceptor().accept(labelled(socket, client));
    let mut stream = Secured::new(timeout(HANDSHAKE_LIMIT, handshake).await??);
    if stream.speaks_http2() {
        timeout(FIRST_BYTE_LIMIT, stream.wait_for(HTTP2_PREFACE)).await??;
        service.app.process_new(Box::new(stream), &service.stopping).await;
    } else {
        http1(stream, client, &service.app, &service.stopping).await;
    }
    Ok(())
}

/// Tells a client that has forgotten the `s` of https.
async fn refuse_plain(mut socket: TcpStream) -> io::Result<()> {
    let told = async {
        socket.write_all(&refusals::plain_http()).await?;
        socket.shutdown().await?;
        // Closing with bytes unread would reset the connection under the answer.
        let mut unread = [0; 1024];
        while socket.read(&mut unread).await? > 0 {}
        Ok(())
    };
    timeout(HANDSHAKE_LIMIT, told).await?
}

/// Serves one HTTP/1 request after another, for as long as they come.
async fn http1<A, S>(stream: S, client: SocketAddr, app: &Arc<A>, stopping: &watch::Receiver<bool>)
where
    A: HttpServerApp + Send + Sync + 'static,
    S: IO + 'static,
{
    let conversation = Conversation::new();
    let talk = converse(stream, app, stopping, &conversation);
    if !Arc::clone(&conversation).over(KEEPALIVE, talk).await {
        debug!(%client, limit = ?KEEPALIVE, "a connection was closed that sent no whole request head");
    }
}

async fn converse<A, S>(
    stream: S,
    app: &Arc<A>,
    stopping: &watch::Receiver<bool>,
    conversation: &Conversation,
) where
    A: HttpServerApp + Send + Sync + 'static,
    S: IO + 'static,
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
/// request never sends. Where they begin HTTP/2's preface, it is waited for to its end.
async fn speaks_http2(socket: &TcpStream) -> io::Result<bool> {
    let mut first = [0; HTTP2_PREFACE];
    loop {
        let seen = socket.peek(&mut first).await?;
        if seen == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let compared = seen.min(HTTP2_BEGINS.len());
        if first.get(..compared) != HTTP2_BEGINS.get(..compared) {
            return Ok(false);
        }
        if seen == first.len() {
            return Ok(true);
        }
        tokio::time::sleep(BETWEEN_PEEKS).await;
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
