//! Lets what one turn of a connection's task writes to an engine leave together. Pingora flushes a request's
//! head before it writes the body: two packets, and two wake-ups of the engine, for what fits into one. The
//! handshake of a WebSocket is held too, though it is its head alone: answered within the turn, it would
//! be taken for a connection at its end.
//!
//! The engine's socket is corked when such a request is about to be written, and uncorked at the end of the
//! turn, by when all of it is written and noted. Should that ever be missed, the kernel sends what it has
//! after 200 ms.

use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::net::sockopt::set_tcp_cork;

/// No descriptor.
const NONE: RawFd = -1;

/// The engine's socket that is corked now.
#[derive(Debug)]
pub(super) struct Together(AtomicI32);

impl Together {
    pub(super) fn new() -> Self {
        Self(AtomicI32::new(NONE))
    }

    /// What is written to `socket` waits until [`Together::send`]. The socket must be open until then, or
    /// until [`Together::forget`].
    pub(super) fn hold(&self, socket: RawFd) {
        if cork(socket, true) {
            self.0.store(socket, Ordering::Relaxed);
        }
    }

    /// What was held goes.
    pub(super) fn send(&self) {
        let socket = self.0.load(Ordering::Relaxed);
        if socket != NONE {
            self.forget();
            cork(socket, false);
        }
    }

    /// The socket may be closed from now on.
    pub(super) fn forget(&self) {
        self.0.store(NONE, Ordering::Relaxed);
    }
}

/// False where the socket takes no such option; then its bytes leave as they are written.
#[expect(unsafe_code, reason = "Pingora shows sockets as numbers; see below why this one is open")]
fn cork(socket: RawFd, on: bool) -> bool {
    // SAFETY: a number comes here while the request on it is under way, for which Pingora keeps the socket
    // open: `Together` forgets it when the engine answers, when the exchange fails and when the request
    // ends, each before Pingora can close it or gives the turn away. Were it closed all the same, the worst
    // would be an option set on another socket, which only changes how its bytes are cut into packets.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    set_tcp_cork(socket, on).is_ok()
}
