//! Reads the body to its end: under a deadline, a limit for one and a limit for all of them together.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use flexinfer_core::rejection::Rejection;
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
pub(crate) async fn read(
    parts: &Parts,
    session: &mut Session,
) -> Result<Option<(Bytes, Held)>, Stop> {
    if session.is_body_empty() {
        return Ok(None);
    }
    // Whatever can be refused by the head was: a client that asks first is told to go on.
    if !session.is_http2() && session.req_header().headers.contains_key(EXPECT) {
        session.write_continue_response().await.map_err(|_| Stop::ClientLeft)?;
    }
    let announced = announced_length(&session.req_header().headers);
    let mut arriving = Arriving::new(parts, announced);
    while let Some(chunk) = arriving.next(session).await? {
        arriving.take(chunk)?;
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
    fn new(parts: &'a Parts, announced: Option<u64>) -> Self {
        Self {
            parts,
            announced,
            deadline: Instant::now() + parts.limits.body_deadline,
            only: None,
            joined: BytesMut::new(),
            held: parts.budget.open(),
        }
    }

    async fn next(&self, session: &mut Session) -> Result<Option<Bytes>, Stop> {
        let pause: Duration = self.parts.limits.body_pause;
        let limit = self.deadline.min(Instant::now() + pause);
        match timeout_at(limit, session.downstream_session.read_request_body()).await {
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
