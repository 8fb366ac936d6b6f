//! Sends a request body upstream that was read before anybody knew where it goes: whole, or as much of it
//! as says so.
//!
//! Guardrail. Pingora replays a body read in `request_filter` only from its own buffer of 64 KiB; above
//! that it sends nothing and the request hangs. The way around it is `pingora_core`'s `doc(hidden)`
//! trait for custom sessions, hence the exact pin of Pingora's version: a new version moves only with
//! `gateway/tests/suite/bodies.rs` green. What must hold:
//!
//! 1. [`Replay::begin`] runs in `upstream_request_filter`, after the body was read, but for its [`Rest`]. The session of
//!    the client is then out of Pingora's hands, inside [`session::ReplaySession`].
//! 2. [`Replay::end`] runs at the last `request_body_filter`, and, for what broke before, in
//!    `error_while_proxy` and in `logging`. Only the real session can be kept alive or retried with.
//! 3. The upstream head carries `content-length`, so that nothing depends on how the client framed the body;
//!    chunks only where a [`Rest`] follows whose length nobody knows.

mod budget;
mod rest;
mod session;
mod upload;

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use pingora_core::protocols::http::ServerSession;

pub use budget::{Budget, Held, Whose};
pub(crate) use rest::malformed;
pub use rest::{Patience, Remaining, Rest};
use session::ReplaySession;
pub use upload::Upload;

/// Where the real session is put when the one that stands in for it is dropped.
type Home = Arc<Mutex<Option<Returned>>>;

/// The real session, and what is left of the body that is read from it.
struct Returned {
    session: ServerSession,
    rest: Option<Rest>,
}

/// A replay under way: the client's session is inside a stand-in that hands out the body.
pub struct Replay {
    home: Home,
}

impl Replay {
    /// Puts a session in place of `session` that reads as if `body` still had to come, and `rest` after that.
    pub fn begin(session: &mut ServerSession, body: &Upload, rest: Option<Rest>) -> Self {
        let home = Home::default();
        let real = mem::replace(session, nobody());
        let stand_in = ReplaySession::new(real, body, rest, Arc::clone(&home));
        *session = ServerSession::new_custom(Box::new(stand_in));
        Self { home }
    }

    /// Puts the real session back. What it returns is the rest of the body, as far as that has come.
    pub fn end(self, session: &mut ServerSession) -> Option<Rest> {
        come_home(&self.home, session)
    }
}

/// A watch over an engine that may fall silent, by a stand-in like that of a [`Replay`].
pub struct Watch {
    home: Home,
    expired: Arc<AtomicBool>,
}

impl Watch {
    /// Lets the exchange fail when nothing comes from the engine for `limit`. The request must have been
    /// read and replayed to its end.
    pub fn begin(session: &mut ServerSession, limit: Duration) -> Self {
        let (home, expired) = (Home::default(), Arc::<AtomicBool>::default());
        let real = mem::replace(session, nobody());
        let stand_in =
            ReplaySession::watching(real, limit, Arc::clone(&expired), Arc::clone(&home));
        *session = ServerSession::new_custom(Box::new(stand_in));
        Self { home, expired }
    }

    /// Puts the real session back, and tells whether the engine was silent for too long.
    pub fn end(self, session: &mut ServerSession) -> bool {
        come_home(&self.home, session);
        self.expired.load(Ordering::Relaxed)
    }
}

fn come_home(home: &Home, session: &mut ServerSession) -> Option<Rest> {
    *session = nobody();
    let returned = home.lock().take()?;
    *session = returned.session;
    returned.rest
}

/// A session that is never asked anything: it only fills the place while another one moves.
fn nobody() -> ServerSession {
    ServerSession::new_custom(Box::new(()))
}
