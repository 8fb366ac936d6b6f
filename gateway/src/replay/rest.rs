//! The rest of a body whose beginning was enough to choose an engine: it stays in the client's socket until
//! the engine takes it, and is looked through on its way for what would have been refused.

use std::time::Duration;

use bytes::Bytes;
use flexinfer_core::openai::{FormScanner, Understood};
use flexinfer_core::rejection::Rejection;
use pingora_core::protocols::http::ServerSession;
use pingora_core::{BError, Error, ErrorType, Result};
use tokio::time::{Instant, timeout_at};

/// What is still to come of a body.
#[derive(Debug)]
pub struct Rest {
    remaining: Remaining,
    /// Reads on in the form, if it is one.
    scanner: Option<Box<FormScanner>>,
    /// The `model` parts that are in what was read before.
    model_parts: usize,
    patience: Patience,
    /// When it must be here, from the moment on that its engine takes it.
    deadline: Option<Instant>,
    begun: bool,
    refusal: Option<Rejection>,
}

/// How much of a body has not come yet.
#[derive(Clone, Copy, Debug)]
pub enum Remaining {
    /// This many bytes: it was announced.
    Known(u64),
    /// Nobody knows until its end.
    Unknown {
        /// The most bytes that are taken.
        room: u64,
        /// The most bytes that the whole body may have.
        limit: u64,
    },
    /// None: it is at its end.
    Nothing,
}

/// How long a body may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Between two pieces.
    pub pause: Duration,
    /// In all.
    pub whole: Duration,
}

impl Rest {
    /// The `remaining` bytes of a form in which `scanner` has found the model, or of a body that nobody
    /// looks into.
    pub fn new(
        remaining: Remaining,
        scanner: Option<Box<FormScanner>>,
        patience: Patience,
    ) -> Self {
        let model_parts = scanner.as_ref().map_or(0, |scanner| scanner.model_parts());
        Self {
            remaining,
            scanner,
            model_parts,
            patience,
            deadline: None,
            begun: false,
            refusal: None,
        }
    }

    /// What the beginning says.
    pub fn understood(&self) -> Understood {
        let form = self.scanner.as_ref().and_then(|scanner| scanner.so_far());
        form.map_or(Understood::Opaque, Understood::Form)
    }

    /// How many bytes are still to come, if that is known.
    pub fn length(&self) -> Option<u64> {
        match self.remaining {
            Remaining::Known(bytes) => Some(bytes),
            Remaining::Unknown { .. } => None,
            Remaining::Nothing => Some(0),
        }
    }

    /// Whether any of it was read: then it cannot be sent a second time.
    pub fn begun(&self) -> bool {
        self.begun
    }

    /// Why no more of it goes to the engine.
    pub fn refusal(&mut self) -> Option<Rejection> {
        self.refusal.take()
    }

    /// Whether all of it was handed out.
    pub(super) fn is_done(&self) -> bool {
        self.length() == Some(0)
    }

    /// The next piece, from the client; never an empty one, which Pingora would write to an engine as the end
    /// of the chunks, before their end. Dropping this future loses nothing.
    pub(super) async fn next(&mut self, client: &mut ServerSession) -> Result<Option<Bytes>> {
        loop {
            let piece = self.read(client).await?;
            self.begun |= piece.is_some();
            // The end of what announced no length may come by itself.
            let ended = self.length().is_none() && (piece.is_none() || client.is_body_done());
            let bytes = piece.as_deref().unwrap_or_default();
            self.look(bytes, ended).map_err(|rejection| self.refuse(rejection))?;
            match piece {
                Some(piece) if !piece.is_empty() => return Ok(Some(piece)),
                _ if self.is_done() => return Ok(None),
                _ => {}
            }
        }
    }

    async fn read(&mut self, client: &mut ServerSession) -> Result<Option<Bytes>> {
        let now = Instant::now();
        let deadline = *self.deadline.get_or_insert(now + self.patience.whole);
        let pause_ends = now + self.patience.pause;
        match timeout_at(deadline.min(pause_ends), client.read_body_or_idle(false)).await {
            // Both protocols hold their clients to the length that they announced.
            Ok(Ok(None)) if self.length().is_some() => {
                Error::e_explain(ErrorType::ReadError, "the body ended early")
            }
            Ok(Ok(piece)) => Ok(piece),
            Ok(Err(error)) => Err(match malformed(&error) {
                Some(rejection) => self.refuse(rejection),
                None => error,
            }),
            Err(_) => {
                let late = deadline <= pause_ends;
                let limit = if late { self.patience.whole } else { self.patience.pause };
                Err(self.refuse(Rejection::ReadTimeout { limit }))
            }
        }
    }

    /// Looks for what a form must not have. The last piece is handed out, or a body of unknown length ended,
    /// only if all is well, so that no engine takes a form for whole that another reader would understand
    /// in another way.
    fn look(&mut self, piece: &[u8], ended: bool) -> Result<(), Rejection> {
        let bytes = piece.len() as u64;
        match &mut self.remaining {
            Remaining::Known(known) => *known = known.saturating_sub(bytes),
            Remaining::Unknown { room, limit } => match room.checked_sub(bytes) {
                Some(left) => *room = left,
                None => return Err(Rejection::BodyTooLarge { limit: *limit }),
            },
            Remaining::Nothing => {}
        }
        if let Some(scanner) = &mut self.scanner {
            scanner.push(piece)?;
            if scanner.model_parts() > self.model_parts {
                let problem =
                    "it has a second \"model\" part behind a long one; send the first only";
                return Err(Rejection::InvalidForm { problem: problem.to_owned() });
            }
        }
        if ended || self.is_done() { self.end() } else { Ok(()) }
    }

    /// All of it is here.
    fn end(&mut self) -> Result<(), Rejection> {
        self.remaining = Remaining::Nothing;
        match self.scanner.take() {
            Some(scanner) => scanner.finish().map(drop),
            None => Ok(()),
        }
    }

    #[expect(clippy::unnecessary_box_returns, reason = "Pingora hands its errors around in boxes")]
    fn refuse(&mut self, rejection: Rejection) -> BError {
        self.refusal = Some(rejection);
        Error::explain(ErrorType::ReadError, "the rest of the body is refused").into_down()
    }
}

/// What Pingora calls a body that is not chunked as it says.
const MALFORMED: [&str; 2] = ["InvalidChunk", "InvalidTrailerEnd"];

/// What is wrong with a body that is not framed as it says, if that is why it cannot be read.
pub(crate) fn malformed(error: &Error) -> Option<Rejection> {
    let problem = || "a chunk of it is malformed".to_owned();
    let framing = MALFORMED.contains(&error.etype().as_str());
    framing.then(|| Rejection::InvalidFraming { problem: problem() })
}
