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
