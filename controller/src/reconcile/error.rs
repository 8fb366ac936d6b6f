//! What can keep a pass from being finished.

use std::time::Duration;

/// Why a pass ended early. The next one begins where it stopped.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// This process may not write any more.
    #[error("another controller may lead now")]
    LeadLost,
    /// The server refused or did not answer.
    #[error("cannot {act}: {source}")]
    Refused {
        /// What was tried.
        act: String,
        /// What came back.
        source: Box<kube::Error>,
    },
    /// The server did not answer.
    #[error("cannot {act}: no answer within {limit:?}")]
    Silent {
        /// What was tried.
        act: String,
        /// How long was waited.
        limit: Duration,
    },
}

impl Error {
    /// Whether the server did not take what was written; other objects it may take.
    pub(super) fn is_refusal(&self) -> bool {
        const BUSY: u16 = 429;
        let Self::Refused { source, .. } = self else { return false };
        let kube::Error::Api(status) = &**source else { return false };
        (400..500).contains(&status.code) && status.code != BUSY
    }

    /// Whether somebody else wrote the object meanwhile.
    pub(super) fn is_conflict(&self) -> bool {
        self.has_code(409)
    }

    /// Whether the object is not there any more.
    pub(super) fn is_absence(&self) -> bool {
        self.has_code(404)
    }

    fn has_code(&self, code: u16) -> bool {
        let Self::Refused { source, .. } = self else { return false };
        matches!(&**source, kube::Error::Api(status) if status.code == code)
    }
}
