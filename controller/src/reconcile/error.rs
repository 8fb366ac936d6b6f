//! What can keep a pass from being finished.

use std::time::Duration;

use flexinfer_core::planning::writing::Why;

/// Refusals that say nothing about what was written: who asks is not known, or what is asked for is not there, it
/// took too long, somebody else wrote meanwhile, or too much is asked for.
const PASSING: [u16; 5] = [401, 404, 408, 409, 429];

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
    /// Something that is not the model's has the name.
    #[error("{0}")]
    Taken(String),
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
    /// Why the server does not take what was written, if waiting a moment does not help; and what it said.
    pub(super) fn trouble(&self) -> Option<(Why, String)> {
        let (act, status) = match self {
            Self::Taken(said) => return Some((Why::NameTaken, said.clone())),
            Self::Refused { act, source } => match &**source {
                kube::Error::Api(status) => (act, status),
                _ => return None,
            },
            Self::LeadLost | Self::Silent { .. } => return None,
        };
        let about_the_object = (400..500).contains(&status.code) && !PASSING.contains(&status.code);
        about_the_object
            .then(|| (Why::of(&status.message), format!("cannot {act}: {}", status.message)))
    }

    /// Whether it is about one object; others may be taken.
    pub(super) fn is_refusal(&self) -> bool {
        self.trouble().is_some() || self.is_conflict() || self.is_absence()
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
