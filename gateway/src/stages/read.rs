//! Reads the body, to its end or as far as it has to be known: under a deadline, a limit for one and a limit
//! for all of them together.

use std::net::SocketAddr;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use flexinfer_core::fleet::Named;
use flexinfer_core::openai::apis::{ModelAt, Operation};
use flexinfer_core::openai::{BodyKind, FormScanner, Understood};
use flexinfer_core::rejection::Rejection;
use futures::poll;
use http::header::{CONTENT_TYPE, EXPECT};
use pingora_proxy::Session;
use tokio::time::{Instant, timeout_at};

use super::receive::Call;
use super::{Stop, limit};
use crate::context::{Body, Context};
use crate::parts::Parts;
use crate::replay::{Held, Patience, Remaining, Rest, Whose, malformed};

/// A body that is longer goes on to its engine as it comes, where that is possible.
const STREAMED_ABOVE: u64 = 1024 * 1024;

/// Room that is made at once for a body that announces more.
const FIRST_ROOM: usize = 1024 * 1024;

/// A body as far as it was read.
pub(crate) struct Arrived {
    pub(crate) received: Bytes,
    /// What is still the client's; none where all was read.
    pub(crate) rest: Option<Rest>,
    /// The part of the budget for what was read.
    pub(crate) held: Held,
}

impl Arrived {
    /// The same with what is in it.
    pub(crate) fn body(self, understood: Understood) -> Body {
        let Self { received, rest, held } = self;
        Body { received, rest, understood, changes: Vec::new(), upload: None, _held: held }
    }
}

/// Why a body can go on to its engine before all of it is here.
pub(crate) enum Early {
    /// It is a form, and little of it decides.
    Form(Box<FormScanner>),
    /// Nothing in it decides.
    Opaque,
}

/// Whether a body need not be read to its end first: one that is long, or does not say how long, and is not
/// JSON. At a path that no table has it may be called what it likes, so that where a limit depends on what it says, it is
/// read whole unless it is a form.
pub(crate) fn early(
    parts: &Parts,
    session: &Session,
    context: &Context,
    call: &Call,
    named: Option<&Named>,
) -> Option<Early> {
    if call.announced.is_some_and(|length| length <= STREAMED_ABOVE) {
        return None;
    }
    let operation = call.operation;
    if operation.is_some_and(Operation::is_held_whole) {
        return None;
    }
    if operation.is_some_and(|operation| operation.model_at == ModelAt::Address) {
        return named.map(|_| Early::Opaque);
    }
    let headers = &session.req_header().headers;
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    match BodyKind::of(content_type).ok()? {
        BodyKind::Form(boundary) => Some(Early::Form(Box::new(FormScanner::new(boundary)))),
        BodyKind::Opaque => named
            .filter(|named| operation.is_some() || !limit::depends(parts, context, named))
            .map(|_| Early::Opaque),
        BodyKind::Json => None,
    }
}

/// The body and its part of the budget, read to its end or, where it may go on `early`, as far as it
/// has to be known; `None` where the head says that there is none.
///
/// `announced` is how long the head says that it is.
pub(crate) async fn read(
    parts: &Parts,
    session: &mut Session,
    context: &Context,
    announced: Option<u64>,
    mut early: Option<Early>,
) -> Result<Option<Arrived>, Stop> {
    if session.is_body_empty() {
        return Ok(None);
    }
    // Whatever can be refused by the head was: a client that asks first is told to go on.
    if !session.is_http2() && session.req_header().headers.contains_key(EXPECT) {
        session.write_continue_response().await.map_err(|_| Stop::ClientLeft)?;
    }
    let mut arriving = Arriving::new(parts, announced, context.started, whose(session, context));
    let rest = loop {
        let rest = arriving.rest(&mut early);
        if rest.is_some() {
            break rest;
        }
        let Some(chunk) = arriving.next(session).await? else { break None };
        if let Some(Early::Form(scanner)) = &mut early
            && scanner.push(&chunk).is_err()
        {
            // What is wrong with it, and whether that matters, is found out when it is whole.
            early = None;
        }
        arriving.take(chunk)?;
        if session.downstream_session.is_body_done() {
            break None;
        }
    };
    Ok(Some(Arrived { received: arriving.whole(), rest, held: arriving.held }))
}

/// Whose share of the budget the body takes from.
pub(crate) fn whose(session: &Session, context: &Context) -> Option<Whose> {
    let address = session.client_addr().and_then(|address| address.as_inet());
    Whose::of(context.ruled.caller.as_deref(), address.map(SocketAddr::ip))
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
    fn new(
        parts: &'a Parts,
        announced: Option<u64>,
        begun: std::time::Instant,
        whose: Option<Whose>,
    ) -> Self {
        Self {
            parts,
            announced,
            deadline: Instant::from_std(begun) + parts.limits.body_deadline,
            only: None,
            joined: BytesMut::new(),
            held: parts.budget.open(whose),
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
            Ok(Err(error)) => Err(malformed(&error).map_or(Stop::ClientLeft, Stop::from)),
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

    fn length(&self) -> usize {
        self.only.as_ref().map_or(self.joined.len(), Bytes::len)
    }

    /// What is still to come, if what is here is enough.
    fn rest(&self, early: &mut Option<Early>) -> Option<Rest> {
        let enough = match early {
            None => false,
            Some(Early::Opaque) => true,
            Some(Early::Form(scanner)) => scanner.has_said_all(),
        };
        let remaining = self.remaining().filter(|_| enough)?;
        let scanner = match early.take() {
            Some(Early::Form(scanner)) => Some(scanner),
            Some(Early::Opaque) | None => None,
        };
        let limits = &self.parts.limits;
        let patience = Patience { pause: limits.body_pause, whole: limits.body_deadline };
        Some(Rest::new(remaining, scanner, patience))
    }

    /// What is still to come of a body that is long enough to go on before it is here. One that does not say
    /// its length is taken for short until it is not: it can then be sent with a length, and again.
    fn remaining(&self) -> Option<Remaining> {
        let (here, limit) = (self.length() as u64, self.parts.limits.max_body);
        match self.announced {
            Some(announced) => {
                let bytes = announced.checked_sub(here).filter(|bytes| *bytes > 0)?;
                Some(Remaining::Known(bytes))
            }
            None if here <= STREAMED_ABOVE => None,
            None => Some(Remaining::Unknown { room: limit.saturating_sub(here), limit }),
        }
    }

    fn take(&mut self, chunk: Bytes) -> Result<(), Rejection> {
        let before = self.length();
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
