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
    /// Bytes that have not come yet.
    remaining: u64,
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

/// How long a body may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Between two pieces.
    pub pause: Duration,
    /// In all.
    pub whole: Duration,
}

impl Rest {
    /// The last `remaining` bytes of a form in which `scanner` has found the model, or of a body that
    /// nobody looks into.
    pub fn new(remaining: u64, scanner: Option<Box<FormScanner>>, patience: Patience) -> Self {
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

    /// How many bytes are still to come.
    pub fn remaining(&self) -> u64 {
        self.remaining
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
        self.remaining == 0
    }

    /// The next piece, from the client. Dropping this future loses nothing.
    pub(super) async fn next(&mut self, client: &mut ServerSession) -> Result<Option<Bytes>> {
        let now = Instant::now();
        let deadline = *self.deadline.get_or_insert(now + self.patience.whole);
        let pause_ends = now + self.patience.pause;
        match timeout_at(deadline.min(pause_ends), client.read_body_or_idle(false)).await {
            Ok(Ok(Some(piece))) => self.take(piece).map(Some),
            // Both protocols hold their clients to the length that they announced.
            Ok(Ok(None)) => Error::e_explain(ErrorType::ReadError, "the body ended early"),
            Ok(Err(error)) => Err(error),
            Err(_) => {
                let late = deadline <= pause_ends;
                let limit = if late { self.patience.whole } else { self.patience.pause };
                Err(self.refuse(Rejection::ReadTimeout { limit }))
            }
        }
    }

    fn take(&mut self, piece: Bytes) -> Result<Bytes> {
        self.begun = true;
        self.remaining = self.remaining.saturating_sub(piece.len() as u64);
        match self.look(&piece) {
            Ok(()) => Ok(piece),
            Err(rejection) => Err(self.refuse(rejection)),
        }
    }

    /// Looks for what a form must not have. The last piece is handed out only if all is well, so that no
    /// engine takes a form for whole that another reader would understand in another way.
    fn look(&mut self, piece: &[u8]) -> Result<(), Rejection> {
        let Some(scanner) = &mut self.scanner else { return Ok(()) };
        scanner.push(piece)?;
        if scanner.model_parts() > self.model_parts {
            let problem = "it has a second \"model\" part behind a long one; send the first only";
            return Err(Rejection::InvalidForm { problem: problem.to_owned() });
        }
        if self.remaining == 0
            && let Some(scanner) = self.scanner.take()
        {
            scanner.finish()?;
        }
        Ok(())
    }

    #[expect(clippy::unnecessary_box_returns, reason = "Pingora hands its errors around in boxes")]
    fn refuse(&mut self, rejection: Rejection) -> BError {
        self.refusal = Some(rejection);
        Error::explain(ErrorType::ReadError, "the rest of the body is refused").into_down()
    }
}
