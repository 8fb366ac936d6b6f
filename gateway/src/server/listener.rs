//! The listening socket, bound before anything else starts so that a taken port is told at once.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use pingora_core::protocols::TcpKeepalive;
use socket2::{Domain, Protocol, Socket, Type};

/// Connections that may wait to be accepted; the kernel lowers it to its own bound.
pub(super) const BACKLOG: i32 = 4096;

/// How one finds out that a connection on which nothing is said leads to nobody any more, to clients and engines
/// alike: a WebSocket may be silent for as long as it likes.
pub(crate) const ALIVE: TcpKeepalive = TcpKeepalive {
    idle: Duration::from_secs(60),
    interval: Duration::from_secs(15),
    count: 4,
    #[cfg(target_os = "linux")]
    user_timeout: Duration::ZERO,
};

/// Binds and listens on `address`; port 0 lets the system choose.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restart must not wait for the old connections' TIME_WAIT.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    // What is accepted inherits it.
    let alive = socket2::TcpKeepalive::new().with_time(ALIVE.idle).with_interval(ALIVE.interval);
    let alive = alive.with_retries(u32::try_from(ALIVE.count).unwrap_or(u32::MAX));
    socket.set_tcp_keepalive(&alive)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
