//! Whether a client is still there whose next bytes nobody wants to read yet: the system is asked how its
//! connection stands.
//!
//! A client that closes its sending side counts as gone, like everywhere: docs/decisions/0009.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use pingora_core::protocols::SocketDigest;
use pingora_core::protocols::http::ServerSession;
use tokio::time::sleep;

/// How often the system is asked. Nothing wakes a task when a connection ends behind unread bytes.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// The states of TCP, as Linux numbers them, in which nothing more will come: closed, closed by the other
/// side, and closed by it and then by this one.
const ENDED: [u8; 3] = [7, 8, 9];

/// The client's connection, apart from the session that reads from it.
pub(crate) struct Line(Option<Arc<SocketDigest>>);

impl Line {
    /// The connection of `session`, if it is one that HTTP/1 has for itself.
    pub(crate) fn of(session: &ServerSession) -> Self {
        let digest = session.as_http1().and_then(|_| session.digest());
        Self(digest.and_then(|digest| digest.socket_digest.clone()))
    }

    /// Resolves when the client has hung up.
    pub(crate) async fn hung_up(&self) {
        let Some(socket) = &self.0 else { return pending().await };
        loop {
            sleep(BETWEEN_LOOKS).await;
            // Other systems do not tell.
            if socket.tcp_info().is_some_and(|info| ENDED.contains(&info.tcpi_state)) {
                return;
            }
        }
    }
}
