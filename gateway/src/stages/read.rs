//! Reads the body to its end: under a deadline, a limit for one and a limit for all of them together.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use flexinfer_core::rejection::Rejection;
use futures::poll;
use http::header::EXPECT;
use pingora_proxy::Session;
use tokio::time::{Instant, timeout_at};

use super::Stop;
use super::receive::announced_length;
use crate::parts::Parts;
use crate::replay::Held;

/// Room that is made at once for a body that announces more.
const FIRST_ROOM: usize = 1024 * 1024;

/// What Pingora calls a body that is not chunked as it says.
const MALFORMED: [&str; 2] = ["InvalidChunk", "InvalidTrailerEnd"];

/// The whole body and its part of the budget; `None` where the head says that there is none.
///
/// `begun` is when its head was complete.
pub(crate) async fn read(
    parts: &Parts,
    session: &mut Session,
    begun: std::time::Instant,
) -> Result<Option<(Bytes, Held)>, Stop> {
    if session.is_body_empty() {
        return Ok(None);
    }
    // Whatever can be refused by the head was: a client that asks first is told to go on.
    if !session.is_http2() && session.req_header().headers.contains_key(EXPECT) {
        session.write_continue_response().await.map_err(|_| Stop::ClientLeft)?;
    }
    let announced = announced_length(&session.req_header().headers);
    let mut arriving = Arriving::new(parts, announced, begun);
    while let Some(chunk) = arriving.next(session).await? {
        arriving.take(chunk)?;
        if session.downstream_session.is_body_done() {
            break;
        }
    }
    Ok(Some((arriving.whole(), arriving.held)))
}

struct Arriving<'a> {
    parts: &'a Parts,
    announced: Option<u64>,
    deadline: Instant,
    /// A body that came in one chunk is not copied again.
    only: Option<Bytes>,
    joined: BytesMut,
    held: Held,
}

impl<'a> Arriving<'a> {
    fn new(parts: &'a Parts, announced: Option<u64>, begun: std::time::Instant) -> Self {
        Self {
            parts,
            announced,
            deadline: Instant::from_std(begun) + parts.limits.body_deadline,
            only: None,
            joined: BytesMut::new(),
            held: parts.budget.open(),
        }
    }

    async fn next(&self, session: &mut Session) -> Result<Option<Bytes>, Stop> {
        let pause: Duration = self.parts.limits.body_pause;
        let mut chunk = pin!(session.downstream_session.read_request_body());
        // Mostly it came with the head: the clock is looked at only where there is something to wait for.
        let chunk = match poll!(&mut chunk) {
            Poll::Ready(chunk) => Ok(chunk),
            Poll::Pending => timeout_at(self.deadline.min(Instant::now() + pause), chunk).await,
        };
        match chunk {
            Ok(Ok(chunk)) => Ok(chunk),
            Ok(Err(error)) if MALFORMED.contains(&error.etype().as_str()) => {
                let problem = "a chunk of it is malformed".to_owned();
                Err(Rejection::InvalidFraming { problem }.into())
            }
            Ok(Err(_)) => Err(Stop::ClientLeft),
            Err(_) => {
                let limit = if Instant::now() >= self.deadline {
                    self.parts.limits.body_deadline
                } else {
                    pause
                };
                Err(Rejection::ReadTimeout { limit }.into())
            }
        }
    }

    fn take(&mut self, chunk: Bytes) -> Result<(), Rejection> {
        let before = self.only.as_ref().map_or(self.joined.len(), Bytes::len);
        let length = (before + chunk.len()) as u64;
        if length > self.parts.limits.max_body {
            return Err(Rejection::BodyTooLarge { limit: self.parts.limits.max_body });
        }
        if !self.held.grow(chunk.len() as u64) {
            return Err(Rejection::BufferFull);
        }
        if before == 0 {
            self.only = Some(chunk);
            return Ok(());
        }
        if let Some(first) = self.only.take() {
            let room = self.announced.and_then(|length| usize::try_from(length).ok());
            self.joined.reserve(room.unwrap_or(0).min(FIRST_ROOM).max(first.len() + chunk.len()));
            self.joined.extend_from_slice(&first);
        }
        if self.joined.capacity() - self.joined.len() < chunk.len() {
            // What has begun to arrive is believed to be as long as it says: room for exactly that
            // spares the doubling, which would hold twice as much as is counted.
            let announced = self.announced.and_then(|length| usize::try_from(length).ok());
            let missing = announced.unwrap_or(0).saturating_sub(self.joined.len());
            self.joined.reserve(missing.max(chunk.len()));
        }
        self.joined.extend_from_slice(&chunk);
        Ok(())
    }

    fn whole(&mut self) -> Bytes {
        self.only.take().unwrap_or_else(|| self.joined.split().freeze())
    }
}
