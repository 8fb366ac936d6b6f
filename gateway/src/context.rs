//! What a request carries from stage to stage. Everything that is held for it is a guard in here, so that
//! dropping the context gives all of it back, however the request ended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use flexinfer_core::callers::Caller;
use flexinfer_core::fleet::{Adapter, Served};
use flexinfer_core::limits::UsageEvents;
use flexinfer_core::openai::{Dialect, Pieces, Stream, Understood, UsageReader};
use flexinfer_core::rejection::Rejection;
use flexinfer_core::rewriting::Splice;
use flexinfer_core::routing::{Mark, Strategy};
use http::HeaderValue;

use crate::accounts::Charged;
use crate::adapters::LoadId;
use crate::lifecycle::InFlight;
use crate::metrics::{ModelSeries, Outcome};
use crate::queues::{Booking, Wish};
use crate::replay::{Held, Replay, Rest, Upload, Watch};
use crate::server;
use crate::stages::sessions::Realtime;
use crate::stages::spans::Spans;
use crate::stages::tie::Tied;

/// One request.
pub struct Context {
    /// When its head was complete.
    pub(crate) started: Instant,
    /// Counted until the very end, so that a drain waits for it.
    pub(crate) in_flight: Option<InFlight>,
    /// `X-Request-ID`: the client's, or one made here.
    pub(crate) request_id: Option<HeaderValue>,
    /// What its trace tells.
    pub(crate) spans: Spans,
    /// In whose words it is refused, if it is.
    pub(crate) dialect: Dialect,
    /// The page in a browser that asks.
    pub(crate) page: Page,
    /// What the rules make of it.
    pub(crate) ruled: Ruled,
    /// Which model it is for, once that is known.
    pub(crate) target: Option<Target>,
    /// Its body, until an engine has begun to answer.
    pub(crate) body: Option<Body>,
    /// The way to an engine.
    pub(crate) attempt: Attempt,
    /// What came back.
    pub(crate) answer: Answer,
}

/// Whether the answer says which pages in browsers may read it.
#[derive(Default)]
pub(crate) enum Page {
    /// It says nothing.
    #[default]
    Unasked,
    /// It names this origin; without one it says that it depends on the origin.
    Asked(Option<HeaderValue>),
}

/// The model a request is for, and where on its engine.
pub(crate) struct Target {
    /// As it was when the request came.
    pub(crate) served: Arc<Served>,
    /// The adapter of it that is asked for.
    pub(crate) adapter: Option<Arc<Adapter>>,
    /// Path and query for the engine: the client's, without `/model/<name>`.
    pub(crate) path: String,
    /// Whether the query names the model.
    pub(crate) named_in_query: bool,
    /// Whether the path is in the table, so that a body may be given the model that it does not name.
    pub(crate) listed: bool,
    /// The `/model/<name>` that was taken off the path, as it was received.
    pub(crate) prefix: Option<String>,
    /// Whether the body asks for a stream of events.
    pub(crate) stream: bool,
    /// The metric series that count it.
    pub(crate) series: ModelSeries,
}

impl Target {
    /// What the engine is to be asked for instead of the client's own name for it; `booked` is the model
    /// as it is now. `None` leaves the name as it is.
    pub(crate) fn name_for_engine<'n>(&'n self, booked: &'n Served) -> Option<&'n str> {
        let adapter = self.adapter.as_ref().map(|adapter| &*adapter.name);
        adapter.or_else(|| booked.name_for_engine())
    }
}

/// What the rules make of a request.
#[derive(Default)]
pub(crate) struct Ruled {
    /// Who sends it, where callers are known.
    pub(crate) caller: Option<Arc<Caller>>,
    /// What its client was marked with, where callers are known: engines are told no cookie.
    pub(crate) mark: Option<Mark>,
    /// What it was charged.
    pub(crate) charged: Option<Charged>,
    /// The tokens of its prompt, as far as they can be told from its body; 0 where nothing asks.
    pub(crate) prompt_tokens: u64,
    /// The tokens that it may take; 0 where nothing asks.
    pub(crate) reserved: u64,
    /// Whether the engine goes on with it after the answer.
    pub(crate) background: bool,
    /// Why nobody can tell what its body asks for, where its path is in no table.
    pub(crate) unread: Option<Box<Rejection>>,
    /// How the length of its answer was cut down, as the answer tells it.
    pub(crate) clamped: Option<HeaderValue>,
    /// Takes out of the answer what only the gateway asked for.
    pub(crate) usage_events: Option<UsageEvents>,
    /// How it is counted if a limit refused it.
    pub(crate) refused: Option<Outcome>,
}

/// A body, read whole but for a rest that needs not be known.
pub(crate) struct Body {
    /// As the client sent it, as far as it was read before an engine was chosen.
    pub(crate) received: Bytes,
    /// What has not been read of it.
    pub(crate) rest: Option<Rest>,
    /// What is in it.
    pub(crate) understood: Understood,
    /// What the rules change in it.
    pub(crate) changes: Vec<Splice>,
    /// As the engine shall get it, once a model was booked.
    pub(crate) upload: Option<Upload>,
    /// Its part of the budget for all bodies.
    pub(crate) _held: Held,
}

/// The way to an engine, over all tries.
#[derive(Default)]
pub(crate) struct Attempt {
    /// How its engine is chosen, where there are several.
    pub(crate) strategy: Strategy,
    /// What it asks of that choice.
    pub(crate) wish: Wish,
    /// What ties it to one of them.
    pub(crate) tied: Option<Box<Tied>>,
    /// The slot held now.
    pub(crate) booking: Option<Booking>,
    /// How long it took to get it.
    pub(crate) waited: Option<Duration>,
    /// Connections tried.
    pub(crate) connections: u32,
    /// Why the next connection must be different from the last one.
    pub(crate) retry: Option<Retry>,
    /// The load that gave its engine the adapter, where it is loaded at its first request.
    pub(crate) loaded: Option<LoadId>,
    /// Whether its engine had lost the adapter once.
    pub(crate) reloaded: bool,
    /// Since when engines have said that they are busy, and how often.
    pub(crate) busy: Option<(Instant, u32)>,
    /// Its head and body on their way, until they have left together.
    pub(crate) together: Option<server::Held>,
    /// The body on its way, while it is.
    pub(crate) replay: Option<Replay>,
    /// Whether it asks for a WebSocket.
    pub(crate) websocket: bool,
    /// When there was a connection to send it by.
    pub(crate) connected: Option<Instant>,
    /// Whether a kept connection ended under it: its engine may have begun, so that no other is asked.
    pub(crate) replaced: bool,
    /// Whether the body goes on as it comes, so that it can be sent once only.
    pub(crate) streams: bool,
    /// Whether some of what cannot be sent again has been read.
    pub(crate) streamed: bool,
    /// Looks out for the shorter of the two silences that an engine may keep.
    pub(crate) watch: Option<Watch>,
    /// The interim answers (1xx) of its engine.
    pub(crate) interim: Interim,
    /// Why there is no answer from an engine.
    pub(crate) rejection: Option<Rejection>,
}

impl Attempt {
    /// Whether another engine may be asked, of `most` connections to be tried.
    pub(crate) fn may_move(&self, most: u32) -> bool {
        !self.replaced && self.connections < most
    }
}

/// What came before an answer.
#[derive(Default)]
pub(crate) struct Interim {
    pub(crate) count: usize,
    pub(crate) bytes: usize,
}

/// Why and how to try once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// The engine took no connection: another one, or this one later.
    Elsewhere,
    /// A kept connection turned out to be closed: the same engine, over a new one.
    NewConnection,
    /// The engine is busy: another one, or this one after a pause.
    Later(Duration),
    /// What the request is about is not on this engine.
    NotHere,
    /// The engine has lost the adapter: the same engine, once it has it again.
    Adapter,
}

/// A stored response that an answer is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// It is being made, and has this id.
    Made(String),
    /// It was made for an earlier request that was seen here.
    Recalled(String),
    /// It was made elsewhere, and charged there.
    Foreign,
}

/// What came back, for the log and the metrics.
#[derive(Default)]
pub(crate) struct Answer {
    /// The engine's status.
    pub(crate) status: Option<u16>,
    /// The code of the rejection that the gateway answered with.
    pub(crate) rejected: Option<&'static str>,
    /// From the request's head to the engine's.
    pub(crate) first_byte: Option<Duration>,
    /// From the request's head to the first piece of a stream, and to its last.
    pub(crate) pieces: Option<(Duration, Duration)>,
    /// The stored response that it is about, until its tokens are settled.
    pub(crate) stored: Option<Stored>,
    /// Counts its tokens, where it may tell them.
    pub(crate) usage: Option<UsageReader>,
    /// The realtime session that it is, where a limit counts its tokens.
    pub(crate) session: Option<Box<Realtime>>,
    /// What kind of stream it is, if it is one.
    pub(crate) stream: Option<Stream>,
    /// Whether the stream stands between two of its pieces.
    pub(crate) whole: bool,
    /// The events or lines of a stream so far, counted where a limit asks; `None` for what is no stream.
    pub(crate) counted: Option<Pieces>,
}

impl Context {
    /// A request whose head was read now.
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            in_flight: None,
            request_id: None,
            spans: Spans::default(),
            dialect: Dialect::default(),
            page: Page::default(),
            ruled: Ruled::default(),
            target: None,
            body: None,
            attempt: Attempt::default(),
            answer: Answer::default(),
        }
    }
}
